"""Calls and answers about many jobs and runs at once: groups, heat-maps, days, retries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lookout.wire.connection import Connection
from lookout.wire.filters import Filters, as_query


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGroup:
    """Jobs that have the same of everything they were grouped by; `keys` says of what."""

    keys: Mapping[str, str | None]
    jobs: int
    states: Mapping[str, int]
    first_submitted_at: datetime
    last_submitted_at: datetime
    last_changed_at: datetime
    average_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGroups:
    """Groups, the largest first; `more` says that there are others."""

    groups: tuple[JobGroup, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """Failed runs of one node, pool, queue or hour."""

    name: str
    executor: str = ""
    failures: int
    core_seconds: float
    by_category: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRows:
    """Rows that are not shown, as one."""

    rows: int
    failures: int
    core_seconds: float
    by_category: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Failed runs by row and category, the worst first; hours in their order."""

    categories: tuple[str, ...] = ()
    rows: tuple[HeatRow, ...] = ()
    others: OtherRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureExample:
    """The newest failure of a group."""

    run_id: str
    job_id: str
    category: str = ""
    subcategory: str = ""
    exit_code: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failed runs whose errors are alike, with the queues and nodes where most of them were."""

    fingerprint: str
    failures: int
    first_recorded_at: datetime
    last_recorded_at: datetime
    queues: Mapping[str, int]
    queue_count: int
    nodes: Mapping[str, int]
    node_count: int
    example: FailureExample


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroups:
    """Groups, the largest first; `more` says that there are others."""

    groups: tuple[FailureGroup, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDay:
    """Failed runs of one day with category and subcategory in common."""

    day: datetime
    category: str = ""
    subcategory: str = ""
    failures: int
    core_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDays:
    """The newest day first."""

    days: tuple[FailureDay, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SucceededAfter:
    """Jobs that succeeded after so many retries."""

    retries: int
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRetries:
    """What a rule of a policy decided and what came of the retries; `rule_index` counts from 0, None is the default."""

    policy: str
    rule_index: int | None = None
    granted: int
    verdicts: Mapping[str, int]
    succeeded: int
    succeeded_after: tuple[SucceededAfter, ...] = ()
    failed_again: int = 0
    cancelled: int = 0
    failed_core_hours: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStatistics:
    """By policy and rule."""

    rules: tuple[RuleRetries, ...] = ()


class Statistics:
    """The part of the client that counts. Every call may raise Invalid, which then says how to ask for less."""

    _connection: Connection

    def job_groups(self, by: Sequence[str], filters: Filters | None = None, *, limit: int = 100) -> JobGroups:
        """The jobs of a filter by one to four of queue, state, node, category and others, the largest group first."""
        return self._count(JobGroups, "jobs/groups", filters, by=",".join(by), limit=limit)

    def failure_heat_map(
        self,
        across: str = "node",
        filters: Filters | None = None,
        *,
        since: str = "-7d",
        until: str = "",
        limit: int = 50,
    ) -> HeatMap:
        """Failed runs by category and node, pool, queue or hour. Times may be ages, such as `-12h`."""
        return self._count(
            HeatMap, "failures/heatmap", filters, across=across, since=since, until=until, limit=limit
        )

    def failure_groups(
        self, filters: Filters | None = None, *, since: str = "-7d", until: str = "", limit: int = 50
    ) -> FailureGroups:
        """Failed runs whose errors are alike, the most frequent first."""
        return self._count(FailureGroups, "failures/groups", filters, since=since, until=until, limit=limit)

    def failure_days(
        self, filters: Filters | None = None, *, since: str = "-30d", until: str = ""
    ) -> tuple[FailureDay, ...]:
        """Failed runs by day, category and subcategory, the newest day first."""
        return self._count(FailureDays, "failures/days", filters, since=since, until=until).days

    def retry_statistics(
        self, filters: Filters | None = None, *, since: str = "-30d", until: str = ""
    ) -> tuple[RuleRetries, ...]:
        """By policy and rule: retries granted, how many helped and after how many, what the failures cost."""
        return self._count(RetryStatistics, "stats/retries", filters, since=since, until=until).rules

    def _count[T](self, kind: type[T], path: str, filters: Filters | None, **query: Any) -> T:
        return self._connection.ask_for(kind, "GET", path, query={**as_query(filters), **query})
