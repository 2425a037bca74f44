"""Preemption: what it makes of a run and its job, in a round and on request alike."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q

from scheduler import client_events
from scheduler.models.events import NewEvent
from scheduler.models.runs import Run
from scheduler.states import EventKind, JobState, RunState, UndecidedBecause

RUN_FIELDS = ("state", "ended_at", "recorded_at", "settled_at", "undecided_because", "core_seconds")
JOB_FIELDS = ("state", "state_changed_at", "ended_at", "version", "queued_version")
"""What `preempt` changes of a run and of its job."""

ASKED_TO_GIVE_WAY = Q(job__preempt_requested_at__gte=F("leased_at"))
"""Of runs: somebody asked for the preemption of this one, not of one before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preemption:
    """Why a run gives way."""

    reason: str
    preempting_job_id: str = ""
    """The job that takes its place; empty when somebody asked."""
    requestor: str = ""
    """Who asked; empty when a round did it."""


def asked_to_give_way(run: Run) -> bool:
    """Whether somebody asked for the preemption of this run, not of one before it. `run.job` is loaded."""
    asked_at = run.job.preempt_requested_at
    return asked_at is not None and asked_at >= run.leased_at


def preempt(
    run: Run, why: Preemption, *, at: datetime, recorded_at: datetime, requeue: bool
) -> list[NewEvent]:
    """End the run and, unless its job is requeued, the job; returns the events of it. The caller writes all of them.

    The run counts against no limit and no policy is asked about it: it is settled with this. A requeued job
    keeps what it had grown to. `run.job` is loaded, and locked.
    """
    run.state, run.ended_at, run.recorded_at = RunState.PREEMPTED, at, recorded_at
    run.settled_at, run.undecided_because = recorded_at, UndecidedBecause.PREEMPTED
    run.core_seconds = run.core_seconds_until(at)
    job = run.job
    job.state = JobState.QUEUED if requeue else JobState.PREEMPTED
    job.state_changed_at, job.ended_at = at, None if requeue else at
    job.version += 1
    job.queued_version += requeue
    return _events(run, why, at=at, requeue=requeue)


def _events(run: Run, why: Preemption, *, at: datetime, requeue: bool) -> list[NewEvent]:
    told = {
        EventKind.PREEMPTED: client_events.preempted(
            str(run.id),
            reason=why.reason,
            preempting_job_id=why.preempting_job_id,
            requestor=why.requestor,
        ),
        EventKind.FAILED: client_events.failed(
            reason=why.reason, category="", subcategory="", retryable=requeue
        ),
    }
    return [
        NewEvent(
            job_set_id=run.job.job_set_id,
            job_id=run.job_id,
            run_id=run.id,
            kind=kind,
            created=at,
            payload=payload,
        )
        for kind, payload in told.items()
    ]
