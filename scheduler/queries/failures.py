"""What jobs failed of: what their runs failed of, or what their own end says where no run's failure ended them."""

from collections.abc import Iterable, Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet

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


def failed_of(categories: Sequence[str]) -> Q:
    """Jobs that failed at any time of one of these: `oom`, `oom/limit` with the subcategory, or `none` without any."""
    return Q(Exists(_runs_of(categories))) | _ended_of(categories)


def failed_last_of(categories: Sequence[str]) -> Q:
    """Jobs whose newest failure is of one of these."""
    later = Run.objects.filter(
        job=OuterRef("job"), number__gt=OuterRef("number"), state__in=FAILED_RUN_STATES
    )
    newest_run = Q(Exists(_runs_of(categories).filter(~Exists(later)))) & ~_returned_too_often()
    return newest_run | _ended_of(categories)


def _runs_of(categories: Iterable[str]) -> QuerySet[Run]:
    named = Q()
    for text in categories:
        category, slash, subcategory = text.partition("/")
        named |= Q(category__in=("", text)) if text == NO_CATEGORY else Q(category=text)
        if slash:
            named |= Q(category=category, subcategory=subcategory)
    return Run.objects.filter(named, job=OuterRef("pk"), state__in=FAILED_RUN_STATES)


def _ended_of(categories: Iterable[str]) -> Q:
    """Jobs whose own end is of one of these. It adds nothing to a question about other categories."""
    named = set(categories)
    found = Q()
    if named & _names(REJECTED):
        found |= Q(state=JobState.REJECTED)
    if named & _names(RETURNED_TOO_OFTEN):
        found |= _returned_too_often()
    return found


def _names(failure: Failure) -> set[str]:
    return {failure.category, f"{failure.category}/{failure.subcategory}"}


def _returned_too_often() -> Q:
    newest = Run.objects.filter(
        job=OuterRef("pk"), number=OuterRef("run_count"), state=RunState.LEASE_RETURNED
    )
    return Q(Exists(newest), state=JobState.FAILED)
