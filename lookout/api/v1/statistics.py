"""Jobs in groups, where and how runs fail, and what retries come to."""

import dataclasses
from datetime import datetime
from typing import Annotated, Any

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.bodies import parameters_of, query_of
from lookout.api.endpoint import Endpoint, answer
from lookout.api.lists import HistoryRate
from lookout.api.schema import described
from lookout.api.shapes import AtMost, FromOne, fields_of
from lookout.api.v1 import examples
from lookout.api.v1.statistic_views import (
    FailureDayList,
    FailureGroupList,
    HeatMapView,
    JobGroupList,
    RetryStatistics,
    failure_day_view,
    failure_group_view,
    heat_map_view,
    job_group_view,
    rule_retries_view,
)
from scheduler.errors import Invalid
from scheduler.filters import (
    DECISIONS,
    JOBS,
    RUNS,
    Ago,
    Kind,
    Pair,
    decision_filter_of,
    job_filter_of,
    run_filter_of,
)
from scheduler.filters.kinds import TAKES, read_value
from scheduler.models.clock import database_now
from scheduler.queries.failure_days import failure_days
from scheduler.queries.fingerprints import MOST_GROUPS as MOST_FAILURE_GROUPS
from scheduler.queries.fingerprints import failure_groups
from scheduler.queries.groups import MOST_GROUPS, job_groups
from scheduler.queries.heat_map import MOST_ROWS, Across, heat_map
from scheduler.queries.retries import retry_statistics
from scheduler.queries.rollups import Span


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobGroupsQuery:
    """By what, and how many."""

    by: Annotated[str, AtMost(2_000)]
    """One to four, with commas between, of queue, namespace, jobSet, state; executor, node, pool of the last run;
    category, subcategory of the last failure; verdict, policy of the decision about it; annotation.KEY."""
    limit: Annotated[int, FromOne(MOST_GROUPS)] = 100


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SpanQuery:
    """Of which time, by when things were recorded."""

    since: Annotated[str, AtMost(60)] = "-30d"
    """A time such as 2026-11-29T10:00:00Z, a day, or an age such as -12h; one in days or weeks begins with a whole day in
    UTC. Empty: from the beginning."""
    until: Annotated[str, AtMost(60)] = ""
    """The same. Empty: until now."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HeatMapQuery:
    """Which failures, and how they are told apart."""

    across: Across = Across.NODE
    since: Annotated[str, AtMost(60)] = "-7d"
    """A time, a day, or an age; one in days or weeks begins with a whole day in UTC. Empty: from the beginning."""
    until: Annotated[str, AtMost(60)] = ""
    limit: Annotated[int, FromOne(MOST_ROWS)] = 50
    """Rows; what does not come into them is one more."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroupsQuery:
    """Which failures."""

    since: Annotated[str, AtMost(60)] = "-7d"
    """A time, a day, or an age; one in days or weeks begins with a whole day in UTC. Empty: from the beginning."""
    until: Annotated[str, AtMost(60)] = ""
    limit: Annotated[int, FromOne(MOST_FAILURE_GROUPS)] = 50


class _Statistics(Endpoint):
    throttle_classes = (HistoryRate,)


class JobGroups(_Statistics):
    """Jobs in groups."""

    @described(
        "groupJobs",
        tag="Jobs",
        query=JobGroupsQuery,
        filters=JOBS,
        answer=JobGroupList,
        example=examples.JOB_GROUPS,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """The jobs of a filter in groups, the largest first, with counts by state and times.

        All jobs by queue or state come from totals that are kept, and are exact all the same.
        """
        query, filters = _asked(request, JobGroupsQuery)
        by = [name.strip() for name in query.by.split(",")]
        found = job_groups(job_filter_of(filters), by, limit=query.limit)
        groups = tuple(job_group_view(group, by) for group in found.groups)
        return answer(JobGroupList(groups=groups, more=found.more))


class HeatMapEndpoint(_Statistics):
    """Failures by category and place."""

    @described(
        "failureHeatMap",
        tag="Failures",
        query=HeatMapQuery,
        filters=RUNS,
        answer=HeatMapView,
        example=examples.HEAT_MAP,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """Failed runs by category and node, pool, queue or hour: every try of a job counts, not only the last."""
        query, filters = _asked(request, HeatMapQuery)
        wanted = run_filter_of(filters)
        return answer(heat_map_view(heat_map(wanted, query.across, _span(query), limit=query.limit)))


class FailureGroups(_Statistics):
    """Failures of one kind together."""

    @described(
        "groupFailures",
        tag="Failures",
        query=FailureGroupsQuery,
        filters=RUNS,
        answer=FailureGroupList,
        example=examples.FAILURE_GROUPS,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """Failed runs whose errors are alike but for numbers, ids and addresses, the most frequent first."""
        query, filters = _asked(request, FailureGroupsQuery)
        found = failure_groups(run_filter_of(filters), _span(query), limit=query.limit)
        groups = tuple(failure_group_view(group) for group in found.groups)
        return answer(FailureGroupList(groups=groups, more=found.more))


class FailureDays(_Statistics):
    """Failures day by day."""

    @described(
        "failureDays",
        tag="Failures",
        query=SpanQuery,
        filters=RUNS,
        answer=FailureDayList,
        example=examples.FAILURE_DAYS,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """Failed runs by day, category and subcategory, the newest day first."""
        query, filters = _asked(request, SpanQuery)
        days = failure_days(run_filter_of(filters), _span(query))
        return answer(FailureDayList(days=tuple(failure_day_view(row) for row in days)))


class Retries(_Statistics):
    """What retries come to."""

    @described(
        "retryStatistics",
        tag="Failures",
        query=SpanQuery,
        filters=DECISIONS,
        answer=RetryStatistics,
        example=examples.RETRIES,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """By policy and rule: retries granted, how many helped and after how many, and what the failures cost."""
        query, filters = _asked(request, SpanQuery)
        found = retry_statistics(decision_filter_of(filters), _span(query))
        return answer(RetryStatistics(rules=tuple(rule_retries_view(rule) for rule in found)))


def _asked[Q](request: Request, shape: type[Q]) -> tuple[Q, list[Pair]]:
    """The parameters of a shape, and all others, which are filters."""
    known = tuple(field.wire_name for field in fields_of(shape))
    others = [
        (name, value)
        for name, values in parameters_of(request).lists()
        if name not in known
        for value in values
    ]
    return query_of(request, shape, among=known), others


def _span(query: Any) -> Span:
    """Raises Invalid, also for a span that ends before it begins: in it there is nothing."""
    since, until = _moment(query.since, "since"), _moment(query.until, "until")
    if since and until and until <= since:
        message = f"until takes a time after since, which is {since:%Y-%m-%dT%H:%M:%SZ}; it is {until:%Y-%m-%dT%H:%M:%SZ}."
        raise Invalid(message, path="until")
    return Span(since=since, until=until)


def _moment(text: str, path: str) -> datetime | None:
    if not text:
        return None
    try:
        value = read_value(Kind.TIME, text)
    except ValueError as error:
        raise Invalid(f"{path} takes {TAKES[Kind.TIME]}.", path=path) from error
    assert isinstance(value, Ago | datetime)
    return _before_now(value, text) if isinstance(value, Ago) else value


def _before_now(age: Ago, text: str) -> datetime:
    """An age in days or weeks begins with a whole day, since what is added up of whole days need not be counted again."""
    moment = database_now() - age.length
    return moment.replace(hour=0, minute=0, second=0, microsecond=0) if text.rstrip()[-1] in "dw" else moment
