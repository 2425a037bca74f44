"""What jobs failed of: what their runs failed of, or what their own end says where no run's failure ended them."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q

from policies.failures import Failure, InternalSubcategory, internal_failure
from scheduler.models import Job, Run
from scheduler.states import FAILED_RUN_STATES, JobState, RunState

REJECTED = internal_failure(InternalSubcategory.JOB_REJECTED)
RETURNED_TOO_OFTEN = internal_failure(InternalSubcategory.MAX_RUNS_EXCEEDED)
"""A returned lease is no failure; a job that one ended has come to the limit of returns."""
NO_CATEGORY = "none"
"""How a failure that no category matched is called where people read it and ask for it."""


def last_failed_run(runs: Sequence[Run]) -> Run | None:
    """The newest run that failed; the runs are oldest first."""
    return next((run for run in reversed(runs) if run.state in FAILED_RUN_STATES), None)


def last_failure(job: Job, runs: Sequence[Run]) -> Failure | None:
    """What the job's newest `failed` event says, perhaps without a category; None when it never failed."""
    if job.state == JobState.REJECTED:
        return REJECTED
    if job.state == JobState.FAILED and runs and runs[-1].state == RunState.LEASE_RETURNED:
        return RETURNED_TOO_OFTEN
    run = last_failed_run(runs)
    return Failure(category=run.category, subcategory=run.subcategory) if run else None


def returned_too_often(besides: Q) -> Q:
    """Jobs that too many returned leases ended, the last of which `besides` holds of."""
    newest = Run.objects.filter(
        besides, job=OuterRef("pk"), number=OuterRef("run_count"), state=RunState.LEASE_RETURNED
    )
    return Q(Exists(newest), state=JobState.FAILED)
