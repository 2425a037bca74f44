"""Roll-ups: a recount equals them, late reports included; and with the live rest they are always exact."""

import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from scheduler.executors.protocol import Report, ReportState
from scheduler.models import FailureDay, FailureHour, HistoryMark, Job, JobTotal, RetryHour, Run
from scheduler.models.clock import database_now
from scheduler.models.rollups import FAMILIES, RollUp
from scheduler.queries.rollups import Span, rolled_up, rows_of
from scheduler.reporting import record_reports
from scheduler.rollups import HOUR, close_next_hour, count_ended_jobs, hour_of, roll_up
from scheduler.states import JobState, RunState
from tests.factories import make_job, make_run
from tests.scheduler.other_sessions import another_session
from tests.scheduler.pasts import close_hours, decision_of, make_past, this_hour

pytestmark = pytest.mark.django_db(transaction=True)


def make_failure(at: datetime, **fields: Any) -> Run:
    return make_run(
        make_job(fields.pop("queue", None)),
        state=RunState.FAILED,
        **{"recorded_at": at, "ended_at": at, "core_seconds": 4.0, **fields},
    )


def recount(family: RollUp) -> Counter[Any]:
    """By bucket and keys: what the family counts, straight from the runs, of the closed time."""
    return _summed(family.counted("%(since)s", "%(until)s"), family)


def kept(family: RollUp) -> Counter[Any]:
    return _summed(family.kept, family)


def _summed(sql: str, family: RollUp) -> Counter[Any]:
    mark = HistoryMark.objects.get()
    found: Counter[Any] = Counter()
    for row in rows_of(sql, Span(until=mark.closed_until).parameters):
        for name, value in zip(family.measures, row[-len(family.measures) :], strict=True):
            found[*row[: -len(family.measures)], name] += value
    return found


@pytest.mark.parametrize("seed", range(2))
def test_a_recount_equals_the_roll_ups(seed: int) -> None:
    make_past(40, seed=seed)
    close_hours()
    assert HistoryMark.objects.get().closed_until == this_hour()
    for family in FAMILIES:
        assert kept(family) == recount(family)
        assert kept(family)


@pytest.mark.parametrize("closes", [0, 2, 1_000])
def test_closed_hours_and_the_live_rest_are_the_whole_of_any_span(closes: int) -> None:
    make_past(40, seed=7)
    close_hours(closes)
    now = this_hour()
    spans = [Span(), Span(since=now - timedelta(hours=30, minutes=20))]
    spans += [
        Span(since=now - timedelta(hours=40, minutes=long), until=now - timedelta(hours=until, minutes=long))
        for long in (0, 20)
        for until in (39, 38, 20, 13, -4)
    ]
    for family in FAMILIES:
        for span in spans:
            measures = ", ".join(f"sum({name})" for name in family.measures)
            read = f"WITH {rolled_up(family)} SELECT {measures} FROM found"  # noqa: S608
            counted = family.counted("%(since)s", "%(until)s")
            live = f"WITH found AS ({counted}) SELECT {measures} FROM found"  # noqa: S608
            assert rows_of(read, span.parameters) == rows_of(live, span.parameters), (family, span)


def test_a_late_report_counts_when_it_comes_and_leaves_closed_hours_alone() -> None:
    make_failure(this_hour() - 5 * HOUR)
    run = make_run(make_job(), leased_at=this_hour() - 9 * HOUR, started_at=this_hour() - 8 * HOUR)
    close_hours()
    before = list(FailureHour.objects.values())
    hours_ago = (database_now() - (this_hour() - 5 * HOUR)).total_seconds() - 60
    report = Report(
        run_id=str(run.id), state=ReportState.FAILED, age_seconds=hours_ago, category="oom", exit_code=137
    )
    assert record_reports(executor="local", reports=[report]).any_to_settle
    close_hours()
    assert list(FailureHour.objects.values()) == before
    run.refresh_from_db()
    assert run.ended_at is not None and hour_of(run.ended_at) == this_hour() - 5 * HOUR


def test_the_hour_that_is_not_over_stays_open() -> None:
    make_failure(database_now())
    close_hours()
    assert not FailureHour.objects.exists() and not FailureDay.objects.exists()
    assert HistoryMark.objects.get().closed_until == this_hour()


def test_nothing_is_over_that_an_open_transaction_could_still_record() -> None:
    with another_session() as session:
        began = session.execute("SELECT now()").fetchall()[0][0]
        assert HistoryMark.objects.over_until() == began
        session.rollback()
        assert HistoryMark.objects.over_until() > began


# In the place of the catalog's view: whatever is open has been so for three hours longer.
_OPEN_FOR_HOURS = """
    CREATE TEMPORARY VIEW pg_stat_activity AS
    SELECT datname, backend_type, pid, xact_start - interval '3 hours' AS xact_start FROM pg_catalog.pg_stat_activity
"""


def test_hours_and_counts_wait_for_transactions_that_began_before_their_end() -> None:
    make_failure(this_hour() - 2 * HOUR + timedelta(minutes=1))
    make_job(state=JobState.FAILED)
    with another_session() as session, connection.cursor() as cursor:
        cursor.execute(_OPEN_FOR_HOURS)
        session.execute("SELECT")
        assert not roll_up()
        assert not FailureHour.objects.exists() and not JobTotal.objects.exists()
        session.rollback()
        assert not roll_up()
        assert FailureHour.objects.exists() and JobTotal.objects.exists()
        cursor.execute("DROP VIEW pg_temp.pg_stat_activity")


def test_adding_up_twice_adds_nothing() -> None:
    make_past(10, seed=1)
    assert not roll_up()
    once = [list(model.objects.order_by("id").values()) for model in (FailureHour, RetryHour, JobTotal)]
    assert not roll_up()
    assert [
        list(model.objects.order_by("id").values()) for model in (FailureHour, RetryHour, JobTotal)
    ] == once


def test_two_at_once_count_nothing_twice() -> None:
    make_past(20, seed=2)
    threads = [threading.Thread(target=_roll_up_and_leave) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    roll_up()
    for family in FAMILIES:
        assert kept(family) == recount(family)


def _roll_up_and_leave() -> None:
    try:
        roll_up()
    finally:
        connection.close()


def test_whoever_holds_the_mark_is_not_waited_for() -> None:
    make_failure(this_hour() - 2 * HOUR)
    roll_up()
    make_failure(this_hour() - HOUR / 2)
    with another_session() as session:
        session.execute("SELECT FROM scheduler_historymark FOR UPDATE")
        assert not close_next_hour() and not count_ended_jobs()
    assert FailureHour.objects.count() == 1


def test_an_outcome_counts_in_its_own_hour_with_the_rule_that_granted_the_retry() -> None:
    now, job = this_hour(), make_job()
    for number in (1, 2):
        run = make_run(job, state=RunState.FAILED, recorded_at=now - (6 - number) * HOUR, core_seconds=number)
        decision_of(run, "retry", at=now - (6 - number) * HOUR, used=number - 1).save()
    make_run(job, state=RunState.LEASE_RETURNED, recorded_at=now - 3 * HOUR)
    make_run(job, state=RunState.SUCCEEDED, recorded_at=now - 2 * HOUR)
    close_hours()
    rows = RetryHour.objects.order_by("hour", "outcome").values_list("hour", "outcome", "after", "times")
    assert list(rows) == [
        (now - 5 * HOUR, "", 0, 1),
        (now - 4 * HOUR, "", 0, 1),
        (now - 4 * HOUR, "failed", 1, 1),
        (now - 2 * HOUR, "succeeded", 2, 1),
    ]


def test_the_database_notes_when_the_end_of_a_job_reached_it() -> None:
    before = database_now()
    job = make_job()
    assert Job.objects.get(id=job.id).recorded_at is None
    Job.objects.filter(id=job.id).update(state=JobState.SUCCEEDED, ended_at=before - 3 * HOUR)
    (noted,) = Job.objects.values_list("recorded_at", flat=True)
    assert noted is not None and noted > before
    Job.objects.update(owner="bob")
    job.refresh_from_db(fields=["state", "ended_at"])
    job.save()
    assert Job.objects.get().recorded_at == noted
    make_job(state=JobState.REJECTED)
    assert not Job.objects.filter(ended_at__isnull=False, recorded_at=None).exists()


def test_totals_are_the_jobs_that_ended_each_once() -> None:
    for state in (JobState.SUCCEEDED, JobState.SUCCEEDED, JobState.FAILED, JobState.RUNNING):
        make_job(state=state)
    assert not count_ended_jobs()
    Job.objects.filter(state=JobState.RUNNING).update(state=JobState.FAILED, ended_at=database_now())
    make_job("daily", state=JobState.CANCELLED)
    assert not count_ended_jobs() and not count_ended_jobs()
    assert set(JobTotal.objects.values_list("queue", "state", "jobs")) == {
        ("nightly", "succeeded", 2), ("nightly", "failed", 2), ("daily", "cancelled", 1),
    }  # fmt: skip


def test_what_is_rolled_back_is_not_counted() -> None:
    make_job(state=JobState.SUCCEEDED)
    with transaction.atomic():
        count_ended_jobs()
        transaction.set_rollback(True)
    count_ended_jobs()
    assert JobTotal.objects.get().jobs == 1
