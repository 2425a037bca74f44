"""Cancel jobs: at once where nothing runs, else the run is told to end and its end finishes the job."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from scheduler import client_events
from scheduler.actors import Actor, QueueVerb
from scheduler.models import Change, Event, Executor, Job
from scheduler.models.bulk import among
from scheduler.models.changes import Moved
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.ulids import uuid_of
from scheduler.queries.chosen import Chosen, check_reason, executors_at_work, lock_named, lock_selected
from scheduler.selection import OPEN_JOB_STATES, Selection
from scheduler.states import ChangeKind, EventKind, JobState


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
    """Ids of jobs by what became of them, each in the order asked."""

    cancelled: tuple[str, ...] = ()
    """Ended now: nothing of them was running."""
    cancelling: tuple[str, ...] = ()
    """Their runs were told to end; the jobs end with them."""
    unchanged: tuple[str, ...] = ()
    """Had ended, or were being cancelled, before."""
    more: bool = False
    """There may be others like these: ask again."""


@transaction.atomic
def cancel_jobs(*, job_ids: Sequence[str], reason: str = "", actor: Actor) -> Cancelled:
    """Cancel jobs. Cancelling twice changes nothing: the first user and reason stay.

    All or none: raises NotPermitted where the actor may not cancel one of the jobs, and only then Invalid for
    what is no job id, NotFound for an unknown job.
    """
    chosen = lock_named(job_ids, verb=QueueVerb.CANCEL, actor=actor)
    check_reason(reason)
    return _cancel(chosen, reason, actor)


@transaction.atomic
def cancel_selected(*, selection: Selection, reason: str = "", actor: Actor) -> Cancelled:
    """Cancel the open jobs of a selection, a batch of them; those that are left are the next call's.

    Raises NotPermitted, then Invalid, then NotFound for a queue, executor or node that does not exist.
    """
    chosen = lock_selected(selection, verb=QueueVerb.CANCEL, actor=actor)
    check_reason(reason)
    return _cancel(chosen, reason, actor)


def _cancel(chosen: Chosen, reason: str, actor: Actor) -> Cancelled:
    """The jobs are locked, and the actor may."""
    to_end = [job for job in chosen.jobs if job.state in OPEN_JOB_STATES]
    executors = executors_at_work(to_end)
    waits = {job.id: None for job in to_end if job.id in executors}
    at_once = {job.id: None for job in to_end if job.id not in executors}
    now = database_now()
    _ask(waits, JobState.CANCELLING, None, now, reason, actor)
    _ask(at_once, JobState.CANCELLED, now, now, reason, actor)
    Executor.objects.wake(name for name in executors.values() if name)
    _log(to_end, at_once, reason, actor, chosen.selected)
    Event.objects.append(_events(to_end, at_once, now, actor))  # last: it takes the numbers of the job sets
    return Cancelled(
        cancelled=tuple(at_once),
        cancelling=tuple(waits),
        unchanged=tuple(job.id for job in chosen.jobs if job.state not in OPEN_JOB_STATES),
        more=chosen.more,
    )


def _ask(
    ids: Collection[str],
    state: JobState,
    ended_at: datetime | None,
    now: datetime,
    reason: str,
    actor: Actor,
) -> None:
    Job.objects.filter(id__in=among(map(uuid_of, ids))).update(
        state=state,
        state_changed_at=now,
        ended_at=ended_at,
        cancel_requested_at=now,
        cancel_user=actor.name,
        cancel_reason=reason,
        version=F("version") + 1,
    )


def _events(jobs: Iterable[Job], at_once: Collection[str], now: datetime, actor: Actor) -> list[NewEvent]:
    kinds = {True: (EventKind.CANCELLING, EventKind.CANCELLED), False: (EventKind.CANCELLING,)}
    return [
        NewEvent(
            job_set_id=job.job_set_id,
            job_id=job.id,
            kind=kind,
            created=now,
            payload=client_events.cancelling(actor.name),
        )
        for job in jobs
        for kind in kinds[job.id in at_once]
    ]


def _log(jobs: Iterable[Job], at_once: Collection[str], reason: str, actor: Actor, selected: str) -> None:
    after = {True: JobState.CANCELLED, False: JobState.CANCELLING}
    moved = [Moved(job.queue_id, job.id, job.state, after[job.id in at_once]) for job in jobs]
    Change.objects.log_jobs(ChangeKind.CANCEL_JOBS, moved, actor=actor.name, note=reason, selected=selected)
