"""Jobs in groups: how many of each state, since when, until when, and how long they took."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import (
    Count,
    F,
    FloatField,
    Func,
    Max,
    Min,
    OuterRef,
    Subquery,
    Sum,
    TextField,
    Value,
)
from django.db.models.expressions import Combinable

from scheduler.errors import Invalid
from scheduler.filters import JobFilter
from scheduler.models import Job, Run
from scheduler.queries.leads import jobs_found
from scheduler.queries.patience import within
from scheduler.queries.rollups import rows_of
from scheduler.queries.totals import totals_by
from scheduler.states import FAILED_RUN_STATES, JobState

MOST_GROUPS, MOST_KEYS, LONGEST_KEY = 1_000, 4, 320
ANNOTATION = "annotation."
"""Begins the name of the value of an annotation."""
NARROW = (
    "So many jobs take too long to group. Ask for fewer, by queue or by submitted or finished; or group by queue "
    "and state alone without a filter, which is added up beforehand."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobGroup:
    """Jobs that have the same of everything asked for."""

    keys: tuple[str | None, ...]
    """In the order asked for; None where a job has no such thing, "" for a failure without a category."""
    jobs: int
    states: dict[JobState, int]
    """Only states that some of them are in."""
    first_submitted_at: datetime
    last_submitted_at: datetime
    first_changed_at: datetime | None
    """When the first of them came to its state; None where it was not asked for."""
    last_changed_at: datetime
    """When the last of them came to its state."""
    average_changed_at: datetime
    average_seconds: float | None
    """From submission to the end, of those that have ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobGroups:
    """Groups, the largest first."""

    groups: tuple[JobGroup, ...]
    more: bool
    """There are others, smaller ones."""


def job_groups(
    wanted: JobFilter, by: Sequence[str], *, limit: int = 100, first_change: bool = False
) -> JobGroups:
    """The jobs of a filter by one to four of GROUPS or `annotation.KEY`, in one query.

    All jobs by queue or state come from totals that are kept, exact to the moment; but not with `first_change`, which
    those do not know. Raises Invalid, and TooMuchAsked when the database cannot answer in time.
    """
    _check(by, limit)
    with within(narrow=NARROW, parallel=True):
        found = _rows(wanted, by, limit + 1, first_change=first_change)
    return JobGroups(groups=tuple(_group(row) for row in found[:limit]), more=len(found) > limit)


def _check(by: Sequence[str], limit: int) -> None:
    known = ", ".join((*GROUPS, f"{ANNOTATION}KEY"))
    if not 1 <= len(by) <= MOST_KEYS or len(set(by)) < len(by):
        raise Invalid(f"by takes one to {MOST_KEYS} different ones of {known}.", path="by")
    for name in by:
        annotation = name.startswith(ANNOTATION) and len(ANNOTATION) < len(name) <= LONGEST_KEY
        if (name not in GROUPS and not annotation) or "\x00" in name:
            raise Invalid(f"by takes {known}; '{name[:60]}' is none of them.", path="by")
    if not 1 <= limit <= MOST_GROUPS:
        raise Invalid(f"limit takes a number from 1 to {MOST_GROUPS:,}.", path="limit")


def _rows(
    wanted: JobFilter, by: Sequence[str], limit: int, *, first_change: bool
) -> Sequence[tuple[Any, ...]]:
    try:
        if _is_added_up(wanted, by) and not first_change:
            columns, sql, parameters = _added_up(by)
        else:
            columns, sql, parameters = _counted(wanted, by, first_change=first_change)
    except EmptyResultSet:  # the filter contradicts itself
        return []
    first_changed = "min(first_changed)" if first_change else "NULL::timestamptz"
    grouped = _GROUPED.format(keys=", ".join(columns), parts=sql, first_changed=first_changed)
    return rows_of(grouped, [*parameters, limit])


# Inside are rows by key and state. Groups of one size are in the order of their keys, as all lists are.
_GROUPED = """
    SELECT array[{keys}]::text[], sum(jobs), jsonb_object_agg(state, jobs),
           min(first_submitted), max(last_submitted), min(first_changed), max(last_changed),
           to_timestamp(sum(changed_seconds) / sum(jobs)::float8), sum(lasted_seconds) / sum(ended)::float8
      FROM (SELECT {keys}, state, sum(jobs) AS jobs, min(first_submitted) AS first_submitted,
                   max(last_submitted) AS last_submitted, {first_changed} AS first_changed,
                   max(last_changed) AS last_changed,
                   sum(changed_seconds) AS changed_seconds, nullif(sum(ended), 0) AS ended,
                   sum(lasted_seconds) AS lasted_seconds
              FROM ({parts}) AS part GROUP BY {keys}, state) AS by_state
  GROUP BY {keys} ORDER BY sum(jobs) DESC, {keys} LIMIT %s
"""


def _group(row: tuple[Any, ...]) -> JobGroup:
    keys, jobs, told, first, last, first_changed, changed, average_changed, average_seconds = row
    states = json.loads(told)
    return JobGroup(
        keys=tuple(keys),
        jobs=int(jobs),
        states={state: int(states[state]) for state in JobState if state in states},
        first_submitted_at=first,
        last_submitted_at=last,
        first_changed_at=first_changed,
        last_changed_at=changed,
        average_changed_at=average_changed,
        average_seconds=average_seconds,
    )


def _is_added_up(wanted: JobFilter, by: Sequence[str]) -> bool:
    return not wanted and set(by) <= {"queue", "state"}


def _added_up(by: Sequence[str]) -> tuple[Sequence[str], str, Sequence[object]]:
    keys = [f"k{number}" for number in range(len(by))]
    named = ", ".join(f"{name} AS {key}" for key, name in zip(keys, by, strict=True))
    return keys, f"SELECT {named}, totals.* FROM ({totals_by(by)}) AS totals", []  # noqa: S608


def _counted(
    wanted: JobFilter, by: Sequence[str], *, first_change: bool
) -> tuple[Sequence[str], str, Sequence[object]]:
    keys = {f"k{number}": _expression(name) for number, name in enumerate(by)}
    counted = (
        Job.objects.filter(jobs_found(wanted))
        .annotate(**keys)
        .values(*keys, "state")
        .annotate(**_MEASURES, **(_FIRST_CHANGE if first_change else {}))
        .order_by()
    )
    sql, parameters = counted.query.sql_with_params()
    return list(keys), sql, parameters


def _expression(name: str) -> Combinable:
    if name.startswith(ANNOTATION):
        key = Value(name.removeprefix(ANNOTATION))
        return Func(
            F("annotations"), key, function="jsonb_extract_path_text", output_field=TextField(null=True)
        )
    return GROUPS[name]


def _last_failed(field: str) -> Subquery:
    failed = Run.objects.filter(job=OuterRef("pk"), state__in=FAILED_RUN_STATES)
    return Subquery(failed.order_by("-number").values(field)[:1])


def _seconds(what: Combinable) -> Func:
    # Not EXTRACT, which makes a number of any precision first: that would be half of the time of a group.
    return Func(what, template="date_part('epoch', %(expressions)s)", output_field=FloatField())


GROUPS: dict[str, Combinable] = {
    "queue": F("queue_id"),
    "namespace": F("namespace"),
    "jobSet": F("job_set__name"),
    "state": F("state"),
    "executor": F("last_executor"),
    "node": F("last_node"),
    "pool": F("last_pool"),
    "category": F("last_category"),
    "subcategory": F("last_subcategory"),
    "verdict": _last_failed("decision__verdict"),
    "policy": _last_failed("decision__policy_name"),
}
"""What jobs are grouped by, as SQL: where they ran last, what they failed of last, what was decided about that."""
_MEASURES = {
    "jobs": Count("*"),
    "first_submitted": Min("submitted_at"),
    "last_submitted": Max("submitted_at"),
    "last_changed": Max("state_changed_at"),
    "changed_seconds": Sum(_seconds(F("state_changed_at"))),
    "ended": Count("ended_at"),
    "lasted_seconds": Sum(_seconds(F("ended_at") - F("submitted_at"))),
}
_FIRST_CHANGE = {"first_changed": Min("state_changed_at")}
"""Only Armada's Lookout asks for it."""
