"""Groups, heat-maps and statistics as they travel."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from scheduler.queries.failure_days import FailureDayRow
from scheduler.queries.fingerprints import FailureGroup
from scheduler.queries.groups import JobGroup
from scheduler.queries.heat_map import HeatMap, HeatRow
from scheduler.queries.retries import RuleRetries


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobGroupView:
    """Jobs that have the same of everything they are grouped by."""

    keys: Mapping[str, str | None]
    """By the names in `by`; null where a job has no such thing, empty for a failure without a category."""
    jobs: int
    states: Mapping[str, int]
    """Only states that some of them are in."""
    first_submitted_at: datetime
    last_submitted_at: datetime
    last_changed_at: datetime
    """When the last of them came to its state."""
    average_changed_at: datetime
    average_seconds: float | None
    """From submission to the end, of those that have ended."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobGroupList:
    """Groups, the largest first."""

    groups: tuple[JobGroupView, ...]
    more: bool
    """There are others, smaller ones."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HeatRowView:
    """Failed runs of one node, pool, queue or hour."""

    name: str
    """Of the node, pool or queue, or the moment an hour begins."""
    executor: str
    """Of a node; else empty."""
    failures: int
    core_seconds: float
    """Spent by these runs."""
    by_category: Mapping[str, int]
    """Only categories that there are; the empty one is failures without any."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OtherRowsView:
    """All rows that are not shown, as one."""

    rows: int
    failures: int
    core_seconds: float
    by_category: Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HeatMapView:
    """Failed runs by row and category."""

    categories: tuple[str, ...]
    """The most frequent first."""
    rows: tuple[HeatRowView, ...]
    """The worst first; hours as they followed each other, the last ones."""
    others: OtherRowsView | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureExampleView:
    """The newest failure of a group."""

    run_id: UUID
    job_id: str
    category: str
    subcategory: str
    exit_code: int | None
    message: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroupView:
    """Failed runs whose errors are alike but for numbers, ids and addresses."""

    fingerprint: str
    """Empty for failures that nobody said anything about."""
    failures: int
    first_recorded_at: datetime
    last_recorded_at: datetime
    queues: Mapping[str, int]
    """Failures by queue: the five with the most of them."""
    queue_count: int
    nodes: Mapping[str, int]
    """Failures by node: the five with the most of them."""
    node_count: int
    example: FailureExampleView


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroupList:
    """Groups, the largest first."""

    groups: tuple[FailureGroupView, ...]
    more: bool
    """There are others, smaller ones."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureDayView:
    """Failed runs of one day that have category and subcategory in common."""

    day: datetime
    """Its beginning, in UTC."""
    category: str
    subcategory: str
    failures: int
    core_seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureDayList:
    """The newest day first."""

    days: tuple[FailureDayView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SucceededAfter:
    """Jobs that succeeded with the run a retry gave them."""

    retries: int
    """How many they had had."""
    jobs: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RuleRetriesView:
    """What a rule of a policy, or its default, decided; and what came of the retries it granted.

    A retry counts when it is granted, and what came of it when that is recorded. A retry whose job was cancelled
    while it waited, or preempted, comes to nothing.
    """

    policy: str
    rule_index: int | None
    """From 0; null for what no rule matched."""
    granted: int
    """Retries."""
    verdicts: Mapping[str, int]
    """Decisions by verdict."""
    succeeded: int
    succeeded_after: tuple[SucceededAfter, ...]
    failed_again: int
    cancelled: int
    failed_core_hours: float
    """Spent by the failed runs that were decided about."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RetryStatistics:
    """By policy and rule."""

    rules: tuple[RuleRetriesView, ...]


def job_group_view(group: JobGroup, by: Sequence[str]) -> JobGroupView:
    """A group of jobs as it travels."""
    return JobGroupView(
        keys=dict(zip(by, group.keys, strict=True)),
        jobs=group.jobs,
        states={str(state): count for state, count in group.states.items()},
        first_submitted_at=group.first_submitted_at,
        last_submitted_at=group.last_submitted_at,
        last_changed_at=group.last_changed_at,
        average_changed_at=group.average_changed_at,
        average_seconds=group.average_seconds,
    )


def heat_map_view(found: HeatMap) -> HeatMapView:
    """A heat-map as it travels."""
    return HeatMapView(
        categories=found.categories,
        rows=tuple(_heat_row_view(row) for row in found.rows),
        others=_other_rows_view(found.others) if found.others else None,
    )


def _other_rows_view(others: HeatRow) -> OtherRowsView:
    return OtherRowsView(
        rows=int(str(others.name)),
        failures=others.failures,
        core_seconds=others.core_seconds,
        by_category=others.by_category,
    )


def _heat_row_view(row: HeatRow) -> HeatRowView:
    return HeatRowView(
        name=row.name.isoformat().replace("+00:00", "Z") if isinstance(row.name, datetime) else row.name,
        executor=row.executor,
        failures=row.failures,
        core_seconds=row.core_seconds,
        by_category=row.by_category,
    )


def failure_group_view(group: FailureGroup) -> FailureGroupView:
    """A group of failures as it travels."""
    newest = group.example
    return FailureGroupView(
        fingerprint=group.fingerprint,
        failures=group.failures,
        first_recorded_at=group.first_recorded_at,
        last_recorded_at=group.last_recorded_at,
        queues=group.queues,
        queue_count=group.queue_count,
        nodes=group.nodes,
        node_count=group.node_count,
        example=FailureExampleView(
            run_id=newest.run_id,
            job_id=newest.job_id,
            category=newest.category,
            subcategory=newest.subcategory,
            exit_code=newest.exit_code,
            message=newest.message,
        ),
    )


def failure_day_view(row: FailureDayRow) -> FailureDayView:
    """A day's failures of one kind as they travel."""
    return FailureDayView(
        day=row.day,
        category=row.category,
        subcategory=row.subcategory,
        failures=row.failures,
        core_seconds=row.core_seconds,
    )


def rule_retries_view(found: RuleRetries) -> RuleRetriesView:
    """What a rule's retries came to, as it travels."""
    return RuleRetriesView(
        policy=found.policy,
        rule_index=found.rule,
        granted=found.granted,
        verdicts={str(verdict): count for verdict, count in found.verdicts.items()},
        succeeded=found.succeeded,
        succeeded_after=tuple(
            SucceededAfter(retries=after, jobs=jobs) for after, jobs in sorted(found.succeeded_after.items())
        ),
        failed_again=found.failed_again,
        cancelled=found.cancelled,
        failed_core_hours=found.failed_core_seconds / 3_600,
    )
