"""Retention: what is too old goes, whole; what is not, or is not added up, stays."""

from dataclasses import replace
from io import StringIO

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models

from scheduler import retention
from scheduler.filters import JobFilter
from scheduler.metrics import Count, Metric
from scheduler.models import (
    Counter,
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
from scheduler.queries.groups import job_groups
from scheduler.retention import Removed, remove_some, what_is_too_old
from scheduler.rollups import roll_up
from scheduler.states import JobState
from tests.factories import make_job
from tests.scheduler.ended_jobs import CONFIG, DAY, jobs_left, make_ended, remove_everything

pytestmark = pytest.mark.django_db(transaction=True)

ABOUT_JOBS = (JobSpec, JobAnnotation, Run, RunError, RunOutput, Decision, Event)


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
    roll_up()
    assert remove_some(config=CONFIG).jobs == 1


@pytest.mark.parametrize("mark", ["closed_until", "counted_until"])
def test_what_was_recorded_after_the_last_closed_hour_or_the_last_count_stays(mark: str) -> None:
    make_ended(60)
    young = make_ended(50, client_id="mine")
    roll_up()
    HistoryMark.objects.update(**{mark: database_now() - 55 * DAY})
    assert remove_some(config=CONFIG) == Removed(jobs=1, runs=1, events=1, outputs=1)
    assert jobs_left() == {young.id}


def test_what_went_is_counted() -> None:
    for days in (60, 50, 20, 10):
        make_ended(days, client_id=f"job {days}")
    remove_everything()
    totals = dict(Counter.objects.totals(reset_every_seconds=CONFIG.metrics_reset_seconds))
    assert totals == {
        Count(Metric.REMOVED, (what,)): number
        for what, number in (("jobs", 2), ("runs", 2), ("events", 2), ("outputs", 3), ("client_ids", 2))
    }


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


def test_a_dry_run_tells_what_a_run_removes_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MOST_JOBS", 1)
    for days in (60, 50, 20, 8, 1):
        make_ended(days, client_id=f"job {days}")
    before = [list(model.objects.order_by("pk").values()) for model in (Job, *ABOUT_JOBS)]
    told = [StringIO(), StringIO()]
    call_command("retention", "--dry-run", stdout=told[0])
    assert [list(model.objects.order_by("pk").values()) for model in (Job, *ABOUT_JOBS)] == before
    call_command("retention", stdout=told[1])
    went = "2 jobs with 2 runs and 2 events; 3 outputs; 2 client ids."
    assert [each.getvalue().strip() for each in told] == [f"Too old: {went}", f"Removed: {went}"]
