"""Reprioritise jobs: another place in the line of their queue, told at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from scheduler import client_events
from scheduler.actors import Actor, QueueVerb
from scheduler.errors import Invalid
from scheduler.models import Change, Event, Job
from scheduler.models.bulk import among
from scheduler.models.changes import Moved
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.ulids import uuid_of
from scheduler.queries.chosen import Chosen, ids_in, lock_named, lock_selected
from scheduler.selection import OPEN_JOB_STATES, Selection
from scheduler.states import ChangeKind, EventKind

MAX_PRIORITY = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Reprioritized:
    """Ids of jobs by what became of them, each in the order asked."""

    reprioritized: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Had this priority, had ended, or are being cancelled. Of a selection: had this priority when nothing was left
    to do; also those that a call before this one gave it.
    """
    more: bool = False
    """There may be others like these: ask again."""


@transaction.atomic
def reprioritize_jobs(*, job_ids: Sequence[str], priority: int, actor: Actor) -> Reprioritized:
    """Give jobs a priority; the smaller goes first. A second call changes nothing and tells nobody.

    A job that runs keeps running, and goes by the new priority should it come to wait again. All or none: raises
    NotPermitted where the actor may not, and only then Invalid for what is no job id or priority, NotFound.
    """
    chosen = lock_named(job_ids, verb=QueueVerb.REPRIORITIZE, actor=actor)
    _check(priority)
    return _reprioritize(chosen, priority, actor)


@transaction.atomic
def reprioritize_selected(*, selection: Selection, priority: int, actor: Actor) -> Reprioritized:
    """Give the open jobs of a selection a priority, a batch of them; those that are left are the next call's.

    Raises NotPermitted, then Invalid, then NotFound for a queue, executor or node that does not exist.
    """
    others = ~Q(priority=priority) if 0 <= priority <= MAX_PRIORITY else Q()
    chosen = lock_selected(selection, verb=QueueVerb.REPRIORITIZE, actor=actor, besides=others)
    _check(priority)
    had_it = () if chosen.more else ids_in(selection, Q(priority=priority))
    done = _reprioritize(chosen, priority, actor)
    return replace(done, unchanged=had_it)


def _check(priority: int) -> None:
    if not 0 <= priority <= MAX_PRIORITY:
        raise Invalid(f"Takes a whole number from 0 to {MAX_PRIORITY}.", path="priority")


def _reprioritize(chosen: Chosen, priority: int, actor: Actor) -> Reprioritized:
    """The jobs are locked, and the actor may."""
    to_move = {
        job.id: job for job in chosen.jobs if job.state in OPEN_JOB_STATES and job.priority != priority
    }
    Job.objects.filter(id__in=among(map(uuid_of, to_move))).update(
        priority=priority, version=F("version") + 1
    )
    Change.objects.log_jobs(
        ChangeKind.REPRIORITIZE_JOBS,
        [Moved(job.queue_id, job.id, job.priority, priority) for job in to_move.values()],
        actor=actor.name,
        note="",
        selected=chosen.selected,
    )
    Event.objects.append(_events(to_move.values(), priority, database_now(), actor))
    return Reprioritized(
        reprioritized=tuple(to_move),
        unchanged=tuple(job.id for job in chosen.jobs if job.id not in to_move),
        more=chosen.more,
    )


def _events(jobs: Iterable[Job], priority: int, now: datetime, actor: Actor) -> list[NewEvent]:
    return [
        NewEvent(
            job_set_id=job.job_set_id,
            job_id=job.id,
            kind=kind,
            created=now,
            payload=client_events.reprioritizing(priority, requestor=actor.name),
        )
        for job in jobs
        for kind in (EventKind.REPRIORITIZING, EventKind.REPRIORITIZED)
    ]
