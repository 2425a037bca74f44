"""What a filter means, in plain Python over plain values: written apart from the SQL, to compare it with."""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.filters import Ago, Condition, JobFilter, Match, RunFilter, Scope
from scheduler.states import JobState, RunState
from tests.scheduler.history_rows import PlainJob, PlainRun

_ORDER: dict[Match, Callable[[Any, Any], bool]] = {
    Match.GREATER: operator.gt, Match.AT_LEAST: operator.ge, Match.LESS: operator.lt, Match.AT_MOST: operator.le,
}  # fmt: skip
_FAILURE = ("category", "subcategory")
_OF_FAILED_RUN = (
    *_FAILURE,
    "error",
    "reason",
    "fingerprint",
    "verdict",
    "policy",
    "policyVersion",
    "ruleIndex",
)


def job_is_meant(job: PlainJob, wanted: JobFilter, now: datetime) -> bool:
    """Whether the filter means this job."""
    own = (_holds(job.values, each, now) for each in wanted if each.scope is Scope.OWN)
    any_run = [each for each in wanted if each.scope is Scope.ANY]
    last = [each for each in wanted if each.scope is Scope.LAST]
    return (
        all(own)
        and _agreed(any_run, lambda asked: _some(job, asked, now))
        and all(_agreed([each], lambda asked: _last(job, asked[0], now)) for each in last)
    )


def run_is_meant(run: PlainRun, wanted: RunFilter, now: datetime) -> bool:
    """Whether the filter means this run."""
    return all(_of_run(run, each, now) != each.negated for each in wanted)


def _agreed(asked: Sequence[Condition], true_of: Callable[[Sequence[Condition]], bool]) -> bool:
    affirmed = [each for each in asked if not each.negated]
    denied = [replace(each, negated=False) for each in asked if each.negated]
    return (not affirmed or true_of(affirmed)) and not any(true_of([each]) for each in denied)


def _some(job: PlainJob, asked: Sequence[Condition], now: datetime) -> bool:
    about_failures = [each for each in asked if each.field in _FAILURE]
    others = [each for each in asked if each not in about_failures]
    if not about_failures:
        return any(all(_of_run(run, each, now) for each in asked) for run in job.runs)
    failed = [run for run in job.runs if run.is_failure]
    if any(all(_of_run(run, each, now) for each in asked) for run in failed):
        return True
    end = _own_end(job)
    if end is None or not all(_holds(end, each, now) for each in about_failures):
        return False
    return (
        not others
        if job.row.state == JobState.REJECTED
        else all(_of_run(job.runs[-1], o, now) for o in others)
    )


def _last(job: PlainJob, asked: Condition, now: datetime) -> bool:
    if asked.field in _FAILURE and (end := _own_end(job)) is not None:
        return _holds(end, asked, now)
    runs = [run for run in job.runs if run.is_failure or asked.field not in _OF_FAILED_RUN]
    return bool(runs) and _of_run(runs[-1], asked, now)


def _own_end(job: PlainJob) -> dict[str, str] | None:
    """The failure that ended the job itself, where no run's failure did."""
    if job.row.state == JobState.REJECTED:
        return {"category": "internal", "subcategory": "job-rejected"}
    if job.row.state == JobState.FAILED and job.runs[-1].row.state == RunState.LEASE_RETURNED:
        return {"category": "internal", "subcategory": "max-runs-exceeded"}
    return None


def _of_run(run: PlainRun, asked: Condition, now: datetime) -> bool:
    asks_for_none = asked.field == "category" and asked.match is Match.EQUALS and "none" in asked.values
    if asks_for_none and run.is_failure and run.values["category"] is None:
        return True
    return _holds(run.values, replace(asked, negated=False), now)


def _holds(values: dict[str, Any], asked: Condition, now: datetime) -> bool:
    value = values[asked.field]
    if asked.key or isinstance(value, dict):
        value = value.get(asked.key, 0 if asked.field == "resource" else None)
    return _compared(value, asked, values, now) != asked.negated


def _compared(value: Any, asked: Condition, values: dict[str, Any], now: datetime) -> bool:
    if asked.match is Match.EXISTS or value is None:
        return value is not None and asked.match is Match.EXISTS
    wanted = [now - each.length if isinstance(each, Ago) else each for each in asked.values]
    if asked.match is Match.EQUALS:
        whole = (
            f"{values['category']}/{values.get('subcategory') or ''}" if asked.field == "category" else None
        )
        return value in wanted or (whole is not None and whole in wanted)
    return any(_is_part(value, asked.match, each) for each in wanted)


def _is_part(value: Any, match: Match, wanted: Any) -> bool:
    if match is Match.STARTS_WITH:
        return bool(value.startswith(wanted))
    if match is Match.CONTAINS:
        return wanted in value
    return _ORDER[match](value, wanted)


def rows_of(found: Iterable[Any]) -> list[str]:
    """Ids, in an order to compare by."""
    return sorted(str(row.pk) for row in found)
