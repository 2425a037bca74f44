"""Expire the leases of executors that fell silent: their runs end, and settling decides what becomes of the jobs."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from policies.failures import INTERNAL, InternalSubcategory
from scheduler.config import Configuration
from scheduler.fingerprint import fingerprint
from scheduler.models import Event, Job, Run, RunError
from scheduler.models.bulk import update_rows
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.queries.fleet import heard_of
from scheduler.states import ACTIVE_RUN_STATES, EventKind, RunState

EXPIRED_AT_ONCE = 5_000
"""What one transaction expires at most."""
LEASE_EXPIRED = "Lease expired"
EXPIRY_FIELDS = (
    "state", "ended_at", "recorded_at", "attempted", "category", "subcategory", "fingerprint", "core_seconds",
)  # fmt: skip


@transaction.atomic
def expire_leases(*, config: Configuration) -> int:
    """End the runs of executors silent for longer than `executorTimeout`; returns how many.

    They are left for settling, which decides what becomes of their jobs. A second call finds nothing.
    """
    silent = ~heard_of(config, path="executor__")
    active = Run.objects.filter(silent, state__in=ACTIVE_RUN_STATES)
    jobs = _locked(list(active.values_list("job_id", flat=True)[:EXPIRED_AT_ONCE]))
    # A new statement: its snapshot is younger than the locks.
    runs = list(active.filter(job__in=list(jobs)).order_by("job_id"))
    now = database_now()
    for run in runs:
        run.job = jobs[run.job_id]
        _expire(run, now)
    update_rows(runs, EXPIRY_FIELDS)
    RunError.objects.bulk_create([RunError(run=run, message=LEASE_EXPIRED) for run in runs])
    Event.objects.append(
        NewEvent(
            job_set_id=run.job.job_set_id,
            job_id=run.job_id,
            run_id=run.id,
            kind=EventKind.LEASE_EXPIRED,
            created=now,
        )
        for run in runs
    )
    return len(runs)


def _locked(ids: Sequence[str]) -> dict[str, Job]:
    """The jobs as they are now, locked in id order; whoever else locks several does so in that order too."""
    jobs = Job.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True)
    return {job.id: job for job in jobs}


def _expire(run: Run, now: datetime) -> None:
    run.state = RunState.LEASE_EXPIRED
    run.ended_at = run.recorded_at = now
    run.attempted = True
    run.category, run.subcategory = INTERNAL, InternalSubcategory.LEASE_EXPIRED
    run.fingerprint = fingerprint(LEASE_EXPIRED)
    if run.started_at is not None:
        run.core_seconds = run.cpu_request_millicores / 1000 * (now - run.started_at).total_seconds()
