"""Heat-maps, groups of failures, days and retries: what plain Python counts over the same rows, rolled up or not."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.decision import Verdict
from scheduler.errors import Invalid
from scheduler.filters import DecisionFilter, RunFilter, decision_filter_of, run_filter_of
from scheduler.models import Decision, Run
from scheduler.queries.failure_days import failure_days
from scheduler.queries.fingerprints import failure_groups
from scheduler.queries.heat_map import Across, HeatRow, heat_map
from scheduler.queries.retries import RuleRetries, retry_statistics
from scheduler.queries.rollups import Span
from scheduler.rollups import HOUR, hour_of
from scheduler.states import FAILED_RUN_STATES, RunState
from tests.factories import make_job, make_run
from tests.scheduler.pasts import close_hours, make_past, this_hour

pytestmark = pytest.mark.django_db

NAMES: dict[Across, Callable[[Any], object]] = {
    Across.NODE: lambda run: run.node,
    Across.POOL: lambda run: run.pool,
    Across.QUEUE: lambda run: run.queue_id,
    Across.HOUR: lambda run: hour_of(run.recorded_at),
}


@pytest.fixture(params=[5, 1_000], ids=["some hours closed", "all closed"])
def past(request: Any) -> None:
    """Thirty hours of failures, of which some or all are rolled up."""
    make_past(30, seed=11, jobs=20)
    close_hours(request.param)


def spans() -> list[Span]:
    now = this_hour()
    return [
        Span(),
        Span(since=now - 20 * HOUR, until=now - 3 * HOUR),
        Span(since=now - 20 * HOUR + timedelta(minutes=25), until=now + HOUR),
    ]


def failures(span: Span, **fields: Any) -> list[Run]:
    runs = Run.objects.filter(state__in=FAILED_RUN_STATES, **fields)
    return [run for run in runs if _is_in(span, run.recorded_at)]


def _is_in(span: Span, at: datetime | None) -> bool:
    assert at is not None
    return (span.since is None or span.since <= at) and (span.until is None or at < span.until)


def total(runs: list[Run]) -> float:
    return sum(run.core_seconds for run in runs)


FILTERS: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    ("queue=nightly", {"queue": "nightly"}),
    ("category=oom", {"category": "oom"}),
]


@pytest.mark.parametrize("across", Across)
@pytest.mark.usefixtures("past")
def test_a_heat_map_counts_every_failure_of_its_span_once(across: Across) -> None:
    for asked, fields in FILTERS:
        for span in spans():
            runs = failures(span, **fields)
            found = heat_map(run_filter_of(asked), across, span)
            expected = Counter((NAMES[across](run), run.category) for run in runs)
            assert expected == {(row.name, c): n for row in found.rows for c, n in row.by_category.items()}
            assert found.others is None
            assert sum(row.core_seconds for row in found.rows) == total(runs)
            counts = Counter(run.category for run in runs)
            assert list(found.categories) == sorted(counts, key=lambda name: (-counts[name], name))


@pytest.mark.usefixtures("past")
def test_the_worst_come_first_and_the_rest_is_one() -> None:
    runs = Counter(run.node for run in failures(Span()))
    whole = heat_map(RunFilter(), Across.NODE, Span())
    assert [row.failures for row in whole.rows] == sorted(runs.values(), reverse=True)
    part = heat_map(RunFilter(), Across.NODE, Span(), limit=1)
    assert part.rows == whole.rows[:1] and part.categories == whole.categories
    assert part.others is not None and part.others.name == str(len(runs) - 1)
    assert part.others.failures == sum(runs.values()) - part.rows[0].failures


@pytest.mark.usefixtures("past")
def test_of_hours_the_last_are_shown_as_they_followed_each_other() -> None:
    hours = sorted({hour_of(run.recorded_at) for run in failures(Span()) if run.recorded_at})
    found = heat_map(RunFilter(), Across.HOUR, Span(), limit=3)
    assert [row.name for row in found.rows] == hours[-3:]
    assert isinstance(found.others, HeatRow) and found.others.name == str(len(hours) - 3)


@pytest.mark.usefixtures("past")
def test_days_tell_category_and_subcategory() -> None:
    for asked, fields in FILTERS:
        for span in spans():
            expected = Counter(
                (run.recorded_at.replace(hour=0, minute=0, second=0, microsecond=0), run.category, run.subcategory)
                for run in failures(span, **fields) if run.recorded_at
            )  # fmt: skip
            found = failure_days(run_filter_of(asked), span)
            assert expected == {(row.day, row.category, row.subcategory): row.failures for row in found}
            assert [row.day for row in found] == sorted((row.day for row in found), reverse=True)


@pytest.mark.usefixtures("past")
def test_failures_alike_are_one_group_with_the_newest_as_example() -> None:
    for asked, fields in FILTERS:
        for span in spans():
            runs = failures(span, **fields)
            found = failure_groups(run_filter_of(asked), span)
            assert Counter(run.fingerprint for run in runs) == {
                group.fingerprint: group.failures for group in found.groups
            }
            for group in found.groups:
                alike = [run for run in runs if run.fingerprint == group.fingerprint]
                times = [run.recorded_at for run in alike if run.recorded_at]
                assert (group.first_recorded_at, group.last_recorded_at) == (min(times), max(times))
                assert group.queues == Counter(run.queue_id for run in alike)
                assert group.nodes == Counter(run.node for run in alike)
                assert (group.queue_count, group.node_count) == (len(group.queues), len(group.nodes))
                newest = Run.objects.select_related("error").get(id=group.example.run_id)
                assert newest.recorded_at == max(times) and newest.job_id == group.example.job_id


def test_of_many_nodes_a_group_names_the_worst_and_counts_all() -> None:
    make_past(5, seed=4, jobs=1)
    job = make_job()
    for node in "ggffabcde":
        make_run(job, state=RunState.FAILED, fingerprint="many", node=node, recorded_at=this_hour())
    group = failure_groups(RunFilter(), Span(), limit=1).groups[0]
    assert (group.fingerprint, group.failures, group.node_count) == ("many", 9, 7)
    assert list(group.nodes.items()) == [("f", 2), ("g", 2), ("a", 1), ("b", 1), ("c", 1)]


def test_groups_of_failures_beyond_the_limit_are_told_of() -> None:
    make_past(5, seed=4, jobs=12)
    assert failure_groups(RunFilter(), Span(), limit=1).more
    assert not failure_groups(RunFilter(), Span(), limit=200).more


@pytest.mark.usefixtures("past")
def test_retries_are_counted_by_rule_when_granted_and_when_something_came_of_them() -> None:
    for span in spans():
        assert _told(retry_statistics(DecisionFilter(), span)) == _retries(span, list(Decision.objects.all()))
        of_grow = list(Decision.objects.filter(policy_name="grow"))
        assert _told(retry_statistics(decision_filter_of("policy=grow"), span)) == _retries(span, of_grow)


def _told(found: tuple[RuleRetries, ...]) -> Counter[Any]:
    told: Counter[Any] = Counter()
    for each in found:
        key = (each.policy, each.rule)
        told.update({(*key, str(verdict)): count for verdict, count in each.verdicts.items()})
        told.update({(*key, "succeeded", after): count for after, count in each.succeeded_after.items()})
        told.update({(*key, "failed"): each.failed_again, (*key, "cancelled"): each.cancelled})
        told[*key, "core seconds"] = int(each.failed_core_seconds)
    return +told


def _retries(span: Span, decisions: list[Decision]) -> Counter[Any]:
    """The same, run by run in plain Python."""
    told: Counter[Any] = Counter()
    by_run = {decision.run_id: decision for decision in decisions}
    for decision in decisions:
        if _is_in(span, decision.decided_at):
            key = (decision.policy_name, decision.rule_index)
            told[*key, decision.verdict] += 1
            told[*key, "core seconds"] += int(decision.run.core_seconds)
    ends = (*FAILED_RUN_STATES, RunState.SUCCEEDED, RunState.CANCELLED)
    for run in Run.objects.filter(state__in=ends):
        before = (
            Run.objects.filter(job=run.job_id, number__lt=run.number, state__in=ends)
            .order_by("number")
            .last()
        )
        granted = by_run.get(before.id) if before else None
        if granted and granted.verdict == Verdict.RETRY and _is_in(span, run.recorded_at):
            key = (granted.policy_name, granted.rule_index)
            if run.state == RunState.SUCCEEDED:
                told[*key, "succeeded", granted.global_used_after] += 1
            else:
                told[*key, "cancelled" if run.state == RunState.CANCELLED else "failed"] += 1
    return told


def test_filters_that_contradict_themselves_find_nothing() -> None:
    nothing = run_filter_of("job=01aaaaaaaaaaaaaaaaaaaaaaaa&number=1")
    assert not heat_map(nothing, Across.NODE, Span()).rows
    assert not failure_groups(nothing, Span()).groups and not failure_days(nothing, Span())
    assert not retry_statistics(decision_filter_of("policy=none-such"), Span())


QUESTIONS: dict[str, Callable[[], object]] = {
    **{f"heat map by {across}": partial(heat_map, RunFilter(), across, Span()) for across in Across},
    "heat map of a queue": partial(heat_map, run_filter_of("queue=nightly"), Across.NODE, Span()),
    "groups": partial(failure_groups, RunFilter(), Span()),
    "days": partial(failure_days, RunFilter(), Span()),
    "days of a queue": partial(failure_days, run_filter_of("queue=nightly"), Span()),
    "retries": partial(retry_statistics, DecisionFilter(), Span()),
    "retries of a queue": partial(retry_statistics, decision_filter_of("queue=nightly"), Span()),
}


def test_an_answer_takes_the_same_queries_however_much_there_is() -> None:
    few = _queries_of_each()
    make_past(30, seed=5, jobs=25)
    close_hours(3)
    assert _queries_of_each() == few


def _queries_of_each() -> dict[str, int]:
    counts = {}
    for name, ask in QUESTIONS.items():
        with CaptureQueriesContext(connection) as captured:
            ask()
        counts[name] = len(captured)
    return counts


@pytest.mark.parametrize("limit", [0, 1_001])
def test_limits_are_kept(limit: int) -> None:
    with pytest.raises(Invalid, match="limit takes"):
        heat_map(RunFilter(), Across.NODE, Span(), limit=limit)
    with pytest.raises(Invalid, match="limit takes"):
        failure_groups(RunFilter(), Span(), limit=limit)
