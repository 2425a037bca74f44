"""What Armada's Lookout is asked: filters, an order, a stretch of the list; read into what our reads take."""

import dataclasses
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from lookout.api.shapes import AtMost, Named
from scheduler.errors import Invalid
from scheduler.filters import JobFilter, Order, Pair, SortKey, job_filter_of
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

    filters: Annotated[tuple[FilterDocument, ...] | None, AtMost(100)] = None
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
_SIGNS = {
    Match.EXACT: "=", Match.ANY_OF: "=", Match.STARTS_WITH: "^=", Match.CONTAINS: "*=", Match.GREATER_THAN: ">",
    Match.LESS_THAN: "<", Match.GREATER_THAN_OR_EQUAL_TO: ">=", Match.LESS_THAN_OR_EQUAL_TO: "<=",
    Match.EXISTS: "?=",
}  # fmt: skip
_UNLIKE_RUNNING = (JobState.RUNNING, JobState.CANCELLING)
"""Armada shows a job that is asked to end as running until it has."""


def filter_in(document: JobsDocument) -> JobFilter:
    """The jobs that are meant. Raises Invalid and FilterInvalid."""
    pairs = [pair for each in document.filters or () for pair in _pairs(each)]
    if document.active_job_sets:
        pairs.append(("activeJobSet", "yes"))
    return job_filter_of(pairs)


def order_in(document: OrderDocument | None) -> Order:
    """The order of the list; by id from the newest where nothing is said. Raises Invalid."""
    if document is None:
        return (SortKey(name="id", descending=True),)
    if document.field not in ORDERS:
        raise Invalid(f"Jobs are ordered by {', '.join(ORDERS)}.", path="order.field")
    return (SortKey(name=ORDERS[document.field], descending=document.direction is Direction.DESC),)


def _pairs(document: FilterDocument) -> Iterator[Pair]:
    name, sign = _name(document), _SIGNS[document.match]
    if document.match is Match.EXISTS:
        yield f"{name}?", "yes"
        return
    if isinstance(document.value, list) != (document.match is Match.ANY_OF):
        raise Invalid("anyOf takes a list, everything else one value.", path=f"filters.{document.field[:60]}")
    values = document.value if isinstance(document.value, list) else [document.value]
    for text in (text for value in values for text in _texts(document.field, value)):
        yield (f"{name}{sign}{text}", "") if sign in (">", "<") else (f"{name}{sign[:-1]}", text)


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
    return [f"{value}m" if field == "cpu" else str(value)]
