"""Jobs that ended long ago, and what retention leaves of them."""

from datetime import timedelta
from typing import Any

from django.db import transaction

from scheduler.config import Configuration
from scheduler.models import Decision, Event, Job, JobSpec, Run, RunError, RunOutput
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.retention import Removed, remove_some
from scheduler.rollups import roll_up
from scheduler.states import EventKind, JobState, RunState
from tests.factories import make_job, make_run
from tests.scheduler.pasts import decision_of

CONFIG = Configuration()
DAY = timedelta(days=1)


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
    """As often as it takes."""
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
