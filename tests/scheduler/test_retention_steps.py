"""Retention goes in small steps: nobody waits for it, what others hold is left for later, killed it loses nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from lookout.celery import app
from lookout.management.commands import retention as command
from scheduler import retention
from scheduler.models import Event, FailureHour, HistoryMark, Job, RunOutput
from scheduler.models.clock import database_now
from scheduler.retention import MOST_JOBS, Removed, remove_some
from scheduler.rollups import HOUR, roll_up
from scheduler.states import EventKind, JobState
from scheduler.tasks import remove_old
from tests.factories import make_job
from tests.log_lines import log_lines
from tests.scheduler.ended_jobs import CONFIG, DAY, jobs_left, make_ended, remove_everything
from tests.scheduler.other_sessions import another_session

pytestmark = pytest.mark.django_db(transaction=True)


def make_many_ended(jobs: int) -> None:
    """Of which nothing is known."""
    at = database_now() - 60 * DAY
    job_set = make_job().job_set
    Job.objects.bulk_create(
        Job(
            job_set=job_set, queue_id=job_set.queue_id, owner="alice", state=JobState.FAILED, submitted_at=at,
            state_changed_at=at, ended_at=at, recorded_at=at + number * timedelta(seconds=1),
        )
        for number in range(jobs)
    )  # fmt: skip


def test_what_somebody_holds_is_passed_over_and_taken_later() -> None:
    held, free = make_ended(60), make_ended(50)
    roll_up()
    with another_session() as session:
        session.execute("SELECT FROM scheduler_job WHERE recorded_at < now() - interval '55 days' FOR UPDATE")
        assert remove_some(config=CONFIG).jobs == 1
        assert jobs_left() == {held.id} != {free.id}
    assert remove_some(config=CONFIG).jobs == 1


def test_while_the_history_is_added_up_nothing_is_done_and_nobody_waits() -> None:
    make_ended(60)
    roll_up()
    with another_session() as session:
        session.execute("SELECT FROM scheduler_historymark FOR UPDATE")
        assert remove_some(config=CONFIG) == Removed()


def test_a_job_written_about_meanwhile_goes_neither_whole_nor_in_part() -> None:
    job = make_ended(60)
    roll_up()
    with pytest.raises(IntegrityError):
        _remove_while_told(job)
    assert jobs_left() == {job.id}


@transaction.atomic
def _remove_while_told(job: Job) -> None:
    remove_some(config=CONFIG)
    Event.objects.create(
        job_set=job.job_set, number=77, job=job, kind=EventKind.FAILED, created=database_now()
    )


def test_killed_at_any_moment_it_leaves_whole_jobs() -> None:
    for days in range(50, 80):
        make_ended(days)
    roll_up()
    killed = threading.Event()
    thread = threading.Thread(target=_remove_until_killed, args=(killed,))
    thread.start()
    with another_session() as session:
        while not killed.is_set():
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%%gone AS%%' AND pid <> pg_backend_pid()"
            )
            session.commit()
    thread.join()
    jobs_left()
    remove_everything()
    assert not jobs_left()


def _remove_until_killed(killed: threading.Event) -> None:
    try:
        for _ in range(200):
            with transaction.atomic():
                remove_some(config=CONFIG)
                transaction.set_rollback(True)
    except Exception:  # noqa: BLE001 - the database hung up on us, in whatever statement it was
        connection.close()
    finally:
        killed.set()
        connection.close()


def test_the_mark_tells_how_far_outputs_and_client_ids_are_gone() -> None:
    make_ended(30)
    remove_everything()
    mark = HistoryMark.objects.get()
    now = database_now()
    assert now - 14 * DAY - mark.outputs_until < timedelta(minutes=1)
    assert now - 7 * DAY - mark.client_ids_until < timedelta(minutes=1)


@contextmanager
def nobody_waits() -> Iterator[None]:
    """Whatever waits for a lock in this block fails."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '500ms'")
        try:
            yield
        finally:
            cursor.execute("RESET lock_timeout")


OLD = "SELECT FROM {} WHERE recorded_at < now() - interval '19 days' FOR UPDATE OF held"
OLD_OUTPUTS = OLD.format("scheduler_runoutput held JOIN scheduler_run r ON r.id = held.run_id")
OLD_JOBS = OLD.format("scheduler_job held")


@pytest.mark.parametrize(("hold", "outputs", "client_ids"), [(OLD_OUTPUTS, 1, 2), (OLD_JOBS, 2, 1)])
def test_outputs_and_client_ids_that_somebody_holds_are_passed_over_and_taken_later(
    hold: str, outputs: int, client_ids: int
) -> None:
    for days in (20, 18):
        make_ended(days, client_id=f"job {days}")
    roll_up()
    with another_session() as session, nobody_waits():
        session.execute(hold)
        assert remove_some(config=CONFIG) == Removed(outputs=outputs, client_ids=client_ids)
        assert remove_some(config=CONFIG) == Removed()
    left = Removed(outputs=2 - outputs, client_ids=2 - client_ids)
    assert remove_some(config=CONFIG) == left
    assert not RunOutput.objects.exists() and not Job.objects.exclude(client_id=None).exists()


def test_a_step_is_small() -> None:
    assert MOST_JOBS <= 1_000 and retention.MOST_LOOKED_AT <= 10_000
    make_many_ended(MOST_JOBS + 1)
    roll_up()
    first, second = (remove_some(config=CONFIG) for _ in range(2))
    assert (first.jobs, first.more) == (MOST_JOBS, True)
    assert (second.jobs, second.more) == (1, False)


def test_outputs_and_client_ids_go_in_small_steps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MOST_LOOKED_AT", 2)
    for days in (20, 19, 18):
        make_ended(days, client_id=f"job {days}")
    roll_up()
    assert remove_some(config=CONFIG) == Removed(outputs=2, client_ids=2, more=True)
    assert remove_some(config=CONFIG) == Removed(outputs=1, client_ids=1)


def test_the_command_tells_how_far_it_is_and_where_nobody_looks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOLD_SECONDS", 0.0)
    make_ended(61)
    make_many_ended(MOST_JOBS)
    told, progress = StringIO(), StringIO()
    call_command("retention", stdout=told, stderr=progress)
    lines = progress.getvalue().splitlines()
    assert lines[0] == f"Added up until {FailureHour.objects.get().hour + HOUR:%Y-%m-%d %H:%M} so far."
    assert lines[-1].startswith(f"Removed so far: {MOST_JOBS} jobs with 1 runs")
    assert told.getvalue().startswith(f"Removed: {MOST_JOBS + 1} jobs")


@pytest.mark.parametrize(
    "remove", [lambda: call_command("retention", stdout=StringIO()), remove_old], ids=["command", "task"]
)
def test_whoever_removes_waits_for_whoever_adds_up(remove: Callable[[], object]) -> None:
    make_ended(60)
    roll_up()
    thread = threading.Thread(target=_call_and_leave, args=(remove,))
    with another_session() as session:
        session.execute("SELECT FROM scheduler_historymark FOR UPDATE")
        thread.start()
        while thread.is_alive() and not _somebody_waits():
            pass
        assert thread.is_alive()
    thread.join()
    assert not jobs_left()


def _call_and_leave(remove: Callable[[], object]) -> None:
    try:
        remove()
    finally:
        connection.close()


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone() is not None


def test_the_schedule_adds_up_and_removes_and_says_what_went() -> None:
    make_ended(60)
    app.loader.import_default_modules()  # which sets up the log anew
    with log_lines() as log:
        for name in ("add up", "remove old", "remove old"):
            app.tasks[app.conf.beat_schedule[name]["task"]]()
    assert FailureHour.objects.count() == 1
    assert not jobs_left()
    (line,) = [line for line in log.getvalue().splitlines() if "too old" in line]
    assert "too old: 1 jobs with 1 runs and 1 events; 1 outputs; 0 client ids." in line
