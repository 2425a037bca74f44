"""Statistics of a time whose jobs are gone: roll-ups tell it bucket by bucket, and nothing at the edges is lost."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from scheduler.config import Configuration
from scheduler.filters import DecisionFilter, RunFilter
from scheduler.models import HistoryMark, Run
from scheduler.models.clock import database_now
from scheduler.queries.failure_days import failure_days
from scheduler.queries.heat_map import Across, heat_map
from scheduler.queries.retries import retry_statistics
from scheduler.queries.rollups import Span
from scheduler.retention import remove_some
from scheduler.rollups import HOUR, roll_up
from scheduler.states import JobState, RunState
from tests.factories import make_job, make_run
from tests.scheduler.pasts import decision_of, this_hour

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)

type Ask = Callable[[Span], object]


def _heat_map(across: Across) -> Ask:
    return lambda span: heat_map(RunFilter(), across, span)


BY_HOUR: Sequence[Ask] = (
    _heat_map(Across.HOUR),
    _heat_map(Across.QUEUE),
    lambda span: retry_statistics(DecisionFilter(), span),
)
BY_DAY: Sequence[Ask] = (lambda span: failure_days(RunFilter(), span),)
OF_PLACES = (_heat_map(Across.NODE), _heat_map(Across.POOL))
"""Kept as long as the runs: of whole days before these are gone too."""


def make_failed(at: datetime) -> None:
    job = make_job(state=JobState.FAILED, submitted_at=at, recorded_at=at)
    run = make_run(job, state=RunState.FAILED, recorded_at=at, ended_at=at, settled_at=at, category="oom")
    decision_of(run, "fail_rule", at=at).save()


def whole(span: Span, gone: datetime, bucket: timedelta) -> Span:
    """What is told of a span once the jobs before a moment are gone."""

    def begin_of(moment: datetime) -> datetime:
        return moment.replace(minute=0, hour=moment.hour if bucket == HOUR else 0)

    since, until = span.since, span.until
    if since and since < gone:
        since = begin_of(since)
    if until and begin_of(until) < min(until, gone):
        until = begin_of(until) + bucket
    return Span(since=since, until=until)


def spans(noon: datetime) -> list[Span]:
    """Such as begin or end before, within an hour or with one, and such as begin or end after."""
    long_before, before, after = (noon - 340 * MINUTE, noon - 320 * MINUTE, noon + 40 * MINUTE)
    ends = [
        (None, None), (long_before, None), (None, long_before), (long_before, before), (before, noon),
        (noon - 5 * HOUR, noon - HOUR), (noon, None), (after, None), (None, after), (long_before, after),
    ]  # fmt: skip
    return [Span(since=since, until=until) for since, until in ends]


@pytest.mark.parametrize("days_ago", [10, 0], ids=["days ago", "in the day that is not over"])
def test_what_is_rolled_up_is_told_whole_at_the_edges_of_a_span(days_ago: int) -> None:
    noon = this_hour().replace(hour=12) - days_ago * DAY if days_ago else this_hour() - 2 * HOUR
    gone = noon + 5 * MINUTE
    for minutes in (-350, -330, -310, -30, 30, 50, 70):
        make_failed(noon + minutes * MINUTE)
    make_failed(database_now())
    roll_up()
    asked = [(ask, HOUR) for ask in BY_HOUR] + [(ask, DAY) for ask in BY_DAY]
    asked += [(ask, DAY) for ask in OF_PLACES if days_ago]
    told = [[ask(whole(span, gone, bucket)) for span in spans(noon)] for ask, bucket in asked]
    _remove_before(gone)
    assert Run.objects.count() == 4
    assert [[ask(span) for span in spans(noon)] for ask, _ in asked] == told


def _remove_before(moment: datetime) -> None:
    seconds = (database_now() - moment).total_seconds()
    remove_some(config=replace(Configuration(), job_retention_seconds=seconds))
    assert abs(HistoryMark.objects.get().jobs_until - moment) < timedelta(seconds=5)


def test_spans_are_told_to_the_moment_while_their_jobs_are_there() -> None:
    gone = this_hour() - 2 * DAY
    for minutes in (-330, -310):
        make_failed(gone + minutes * MINUTE)
    roll_up()
    seconds = (database_now() - gone + 331 * MINUTE).total_seconds()
    assert not remove_some(config=replace(Configuration(), job_retention_seconds=seconds)).jobs
    (row,) = heat_map(RunFilter(), Across.HOUR, spans(gone)[3]).rows
    assert row.failures == 1


def test_a_span_of_nothing_has_nothing() -> None:
    gone = this_hour() - 2 * DAY
    make_failed(gone - 30 * MINUTE)
    roll_up()
    _remove_before(gone)
    for moment in (gone - 20 * MINUTE, gone - 40 * MINUTE):
        nothing = Span(since=gone - 20 * MINUTE, until=moment)
        assert not failure_days(RunFilter(), nothing)
        assert not heat_map(RunFilter(), Across.HOUR, nothing).rows
