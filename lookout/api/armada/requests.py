"""What Armada's Lookout is asked: filters, an order, a stretch of the list; read into what our reads take."""

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import reduce
from typing import Annotated, Any

from lookout.api.shapes import AtMost, Named
from scheduler.errors import Invalid
from scheduler.filters import (
    MOST_CONDITIONS,
    FilterInvalid,
    FilterProblem,
    JobFilter,
    Order,
    SortKey,
    job_filter_on,
)
from scheduler.filters import Match as OurMatch
from scheduler.states import JobState

MOST_TAKEN = 10_000
MOST_SKIPPED = 1_000_000


class Match(StrEnum):
    """How a value is compared."""

    EXACT = "exact"
    ANY_OF = "anyOf"
    STARTS_WITH = "startsWith"
    CONTAINS = "contains"
    GREATER_THAN = "greaterThan"
    LESS_THAN = "lessThan"
    GREATER_THAN_OR_EQUAL_TO = "greaterThanOrEqualTo"
    LESS_THAN_OR_EQUAL_TO = "lessThanOrEqualTo"
    EXISTS = "exists"


class Direction(StrEnum):
    """Which way."""

    ASC = "ASC"
    DESC = "DESC"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FilterDocument:
    """One thing that must hold."""

    field: Annotated[str, AtMost(1_100)]
    match: Match
    value: Any = None
    is_annotation: Annotated[bool, Named("isAnnotation")] = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OrderDocument:
    """By what, and which way."""

    field: str
    direction: Direction


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobsDocument:
    """A stretch of the list of jobs."""

    filters: Annotated[tuple[FilterDocument, ...] | None, AtMost(MOST_CONDITIONS)] = None
    order: OrderDocument | None = None
    active_job_sets: bool = False
    skip: Annotated[int, AtMost(MOST_SKIPPED)] = 0
    take: Annotated[int, AtMost(MOST_TAKEN)] = 0
    """0 is as many as one answer holds."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GroupedField:
    """By what jobs are grouped."""

    field: Annotated[str, AtMost(1_100)]
    is_annotation: Annotated[bool, Named("isAnnotation")] = False
    last_transition_time_aggregate: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GroupsDocument(JobsDocument):
    """A stretch of the list of groups."""

    grouped_field: GroupedField
    aggregates: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OfJob:
    """Which job."""

    job_id: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OfRun:
    """Which run."""

    run_id: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AnyBackend:
    """`backend` chose between two layouts of Lookout's tables; there is one here."""

    backend: str = ""


FIELDS: Mapping[str, str] = {
    "jobId": "id", "queue": "queue", "jobSet": "jobSet", "owner": "owner", "namespace": "namespace",
    "priorityClass": "priorityClass", "state": "state", "cpu": "cpu", "memory": "memory",
    "ephemeralStorage": "ephemeralStorage", "gpu": "gpu", "priority": "priority", "submitted": "submitted",
    "lastTransitionTime": "stateChanged", "cluster": "executor.last", "node": "node.last", "pool": "pool.last",
}  # fmt: skip
"""Its fields in our filter language; those of runs are about the last one."""
ORDERS: Mapping[str, str] = {
    "jobId": "id", "jobSet": "jobSet", "submitted": "submitted", "lastTransitionTime": "stateChanged",
    "queue": "queue", "state": "state",
}  # fmt: skip
_MATCHES: Mapping[Match, OurMatch] = {
    Match.EXACT: OurMatch.EQUALS, Match.ANY_OF: OurMatch.EQUALS, Match.STARTS_WITH: OurMatch.STARTS_WITH,
    Match.CONTAINS: OurMatch.CONTAINS, Match.GREATER_THAN: OurMatch.GREATER, Match.LESS_THAN: OurMatch.LESS,
    Match.GREATER_THAN_OR_EQUAL_TO: OurMatch.AT_LEAST, Match.LESS_THAN_OR_EQUAL_TO: OurMatch.AT_MOST,
    Match.EXISTS: OurMatch.EXISTS,
}  # fmt: skip
_UNLIKE_RUNNING = (JobState.RUNNING, JobState.CANCELLING)
"""Armada shows a job that is asked to end as running until it has."""


def filter_in(document: JobsDocument) -> JobFilter:
    """The jobs of which every filter holds. Raises Invalid, and FilterInvalid with every problem."""
    found: list[JobFilter] = []
    problems: list[FilterProblem] = []
    for each in document.filters or ():
        try:
            found.append(job_filter_on(_name(each), _MATCHES[each.match], _values(each)))
        except FilterInvalid as error:
            problems += error.problems
    if problems:
        raise FilterInvalid(problems)
    if document.active_job_sets:
        found.append(job_filter_on("activeJobSet", OurMatch.EQUALS, ["yes"]))
    return reduce(operator.and_, found, JobFilter())


def order_in(document: OrderDocument | None) -> Order:
    """The order of the list; by id from the newest where nothing is said. Raises Invalid."""
    if document is None:
        return (SortKey(name="id", descending=True),)
    if document.field not in ORDERS:
        raise Invalid(f"Jobs are ordered by {', '.join(ORDERS)}.", path="order.field")
    return (SortKey(name=ORDERS[document.field], descending=document.direction is Direction.DESC),)


def _values(document: FilterDocument) -> Sequence[str]:
    """Any of which is meant, at least one."""
    if document.match is Match.EXISTS:
        return ["yes"]
    path = f"filters.{document.field[:60]}"
    if isinstance(document.value, list) != (document.match is Match.ANY_OF):
        raise Invalid("anyOf takes a list, everything else one value.", path=path)
    values = document.value if isinstance(document.value, list) else [document.value]
    if not values:
        raise Invalid("anyOf takes at least one value.", path=path)
    return [text for value in values for text in _texts(document.field, value)]


def _name(document: FilterDocument) -> str:
    if document.is_annotation:
        return f"annotation.{document.field}"
    if document.field not in FIELDS:
        raise Invalid(f"Filters are {', '.join(FIELDS)}.", path="filters.field")
    return FIELDS[document.field]


def _texts(field: str, value: Any) -> list[str]:
    """A value as our filters are written."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise Invalid("Takes text or a number.", path=f"filters.{field[:60]}")
    if field == "state" and str(value).upper() == "RUNNING":
        return [str(state) for state in _UNLIKE_RUNNING]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return [f"{value}m" if field == "cpu" else str(value)]
