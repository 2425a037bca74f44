"""Retention: what is too old goes, whole and in small steps; what is not, not added up, or held by others stays."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from scheduler.config import Configuration
from scheduler.filters import JobFilter
from scheduler.models import (
    Decision,
    Event,
    FailureHour,
    HistoryMark,
    Job,
    JobAnnotation,
    JobSet,
    JobSpec,
    NodeDayTotal,
    NodeFailureDay,
    PoolFailureDay,
    Run,
    RunError,
    RunOutput,
)
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.queries.groups import job_groups
from scheduler.retention import Removed, remove_some, what_is_too_old
from scheduler.rollups import roll_up
from scheduler.states import EventKind, JobState, RunState
from tests.factories import make_job, make_run
from tests.scheduler.pasts import decision_of

pytestmark = pytest.mark.django_db(transaction=True)

CONFIG = Configuration()
DAY = timedelta(days=1)
ABOUT_JOBS = (JobSpec, JobAnnotation, Run, RunError, RunOutput, Decision, Event)


def make_ended(days_ago: float, **fields: Any) -> Job:
    """A job that ended so many days ago, with everything that can be known about one."""
    at = database_now() - days_ago * DAY
    annotations = {"team": "night"}
    job = make_job(state=JobState.FAILED, submitted_at=at, recorded_at=at, annotations=annotations, **fields)
    run = make_run(job, state=RunState.FAILED, recorded_at=at, ended_at=at, settled_at=at)
    RunOutput.objects.create(run=run, head=b"said")
    decision_of(run, "fail_rule", at=at).save()
    with transaction.atomic():
        told = NewEvent(job_set_id=job.job_set_id, job_id=job.id, kind=EventKind.FAILED, created=at)
        Event.objects.append([told])
    return job


def remove_everything(config: Configuration = CONFIG) -> Removed:
    roll_up()
    removed = Removed(more=True)
    while removed.more:
        removed += remove_some(config=config)
    return removed


def jobs_left() -> set[str]:
    """The jobs there are; of each there is everything or, where it is gone, nothing."""
    ids = set(Job.objects.values_list("id", flat=True))
    assert set(JobSpec.objects.values_list("job_id", flat=True)) == ids
    assert set(Run.objects.values_list("job_id", flat=True)) == ids
    assert set(RunError.objects.values_list("run__job_id", flat=True)) == ids
    assert set(Decision.objects.values_list("job_id", flat=True)) == ids
    assert set(Event.objects.values_list("job_id", flat=True)) == ids
    return ids


def test_old_jobs_go_with_everything_about_them() -> None:
    make_ended(43)
    young = make_ended(41)
    assert remove_everything() == Removed(jobs=1, runs=1, events=1, outputs=2, client_ids=0)
    assert jobs_left() == {young.id}
    assert remove_everything() == Removed()


def test_every_table_that_refers_to_jobs_or_runs_is_thought_of() -> None:
    referring = {
        model
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and field.related_model in (Job, Run)
    }
    assert referring == set(ABOUT_JOBS)


def test_outputs_go_before_their_jobs_and_client_ids_before_them() -> None:
    jobs = {days: make_ended(days, client_id=f"job {days}") for days in (3, 10, 20)}
    removed = remove_everything()
    assert (removed.jobs, removed.outputs, removed.client_ids) == (0, 1, 2)
    kept = set(RunOutput.objects.values_list("run__job_id", flat=True))
    assert kept == {jobs[3].id, jobs[10].id}
    assert list(Job.objects.exclude(client_id=None)) == [jobs[3]]


def test_zero_keeps_for_good() -> None:
    make_ended(5_000, client_id="mine")
    for_good = replace(
        CONFIG, job_retention_seconds=0.0, output_retention_seconds=0.0, client_id_retention_seconds=0.0
    )
    assert remove_everything(for_good) == Removed() == what_is_too_old(config=for_good)


def test_jobs_that_have_not_ended_stay_however_old() -> None:
    job = make_job(submitted_at=database_now() - 100 * DAY)
    assert remove_everything().jobs == 0
    assert Job.objects.get() == job


def test_nothing_goes_that_is_not_added_up() -> None:
    make_ended(50)
    assert remove_some(config=CONFIG) == Removed()
    assert what_is_too_old(config=CONFIG) == Removed()
    roll_up()
    assert what_is_too_old(config=CONFIG).jobs == 1
    assert remove_some(config=CONFIG).jobs == 1


def test_roll_ups_stay_but_those_of_nodes_and_pools_and_totals_are_those_of_the_list() -> None:
    for days in (60, 50, 1):
        make_ended(days)
    remove_everything()
    assert FailureHour.objects.count() == 3
    for model in (NodeFailureDay, NodeDayTotal, PoolFailureDay):
        assert model.objects.count() == 1
    (group,) = job_groups(JobFilter(), ("queue",)).groups
    assert (group.jobs, group.states) == (1, {JobState.FAILED: 1})
    assert group.first_submitted_at == Job.objects.get().submitted_at


def test_a_queue_of_which_all_is_gone_is_in_no_group() -> None:
    make_ended(60)
    remove_everything()
    assert not job_groups(JobFilter(), ("queue",)).groups
    assert JobSet.objects.exists()  # its events go on from the number they had


def test_a_dry_run_tells_what_would_go_and_changes_nothing() -> None:
    for days in (60, 50, 20, 8, 1):
        make_ended(days, client_id=f"job {days}")
    roll_up()
    before = [list(model.objects.order_by("pk").values()) for model in (Job, *ABOUT_JOBS)]
    told = StringIO()
    call_command("retention", "--dry-run", stdout=told)
    assert "Too old: 2 jobs with 2 runs and 2 events; 3 outputs; 4 client ids." in told.getvalue()
    assert [list(model.objects.order_by("pk").values()) for model in (Job, *ABOUT_JOBS)] == before


def test_the_command_removes_all_of_it_and_says_how_much() -> None:
    for days in (60, 50, 1):
        make_ended(days)
    told = StringIO()
    call_command("retention", stdout=told)
    assert told.getvalue().startswith("Removed: 2 jobs with 2 runs and 2 events; 2 outputs;")
    assert len(jobs_left()) == 1


@contextmanager
def another_session() -> Iterator["psycopg.Connection[Any]"]:
    parameters = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(**{name: parameters[name] for name in names if name in parameters}) as session:
        yield session


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
