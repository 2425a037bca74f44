"""Preempt jobs because somebody asks: their runs are told to give way, and the jobs end with them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduler import client_events
from scheduler.actors import Actor, QueueVerb
from scheduler.config import Configuration
from scheduler.errors import Conflict
from scheduler.models import Change, Event, Executor, Job, Run
from scheduler.models.bulk import among
from scheduler.models.changes import Moved
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.preemption import ASKED_TO_GIVE_WAY
from scheduler.models.ulids import uuid_of
from scheduler.queries.chosen import Chosen, check_reason, lock_named, lock_selected
from scheduler.selection import OPEN_JOB_STATES, Selection
from scheduler.states import ACTIVE_RUN_STATES, ChangeKind, EventKind

PREEMPTED_ON_REQUEST = "Preempted - preemption requested via API"
"""The reason where none was given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preempting:
    """Ids of jobs by what became of them, each in the order asked."""

    preempting: tuple[str, ...] = ()
    """Their runs were told to give way; the jobs end, or wait again, when these have ended."""
    unchanged: tuple[str, ...] = ()
    """Had no run, or one that was asked before."""
    more: bool = False
    """There may be others like these: ask again."""


@transaction.atomic
def preempt_jobs(
    *, job_ids: Sequence[str], reason: str = "", actor: Actor, config: Configuration
) -> Preempting:
    """Have the runs of jobs give way. Asking twice changes nothing: the first user and reason stay.

    Jobs without a run stay as they are. All or none: raises NotPermitted where the actor may not, and only then
    Invalid, NotFound for an unknown job, and Conflict for one whose priority class is not preemptible.
    """
    chosen = lock_named(job_ids, verb=QueueVerb.PREEMPT, actor=actor)
    check_reason(reason)
    runs = _runs_of(chosen.jobs)
    _require_preemptible([job for job in chosen.jobs if job.id in runs], config)
    return _preempt(chosen, runs, reason, actor)


@transaction.atomic
def preempt_selected(
    *, selection: Selection, reason: str = "", actor: Actor, config: Configuration
) -> Preempting:
    """Have the runs of a selection give way, as far as their classes are preemptible; a batch of them.

    Those that are left are the next call's. Raises NotPermitted, then Invalid, then NotFound for a queue, executor
    or node that does not exist.
    """
    chosen = lock_selected(selection, verb=QueueVerb.PREEMPT, actor=actor, besides=would_give_way(config))
    check_reason(reason)
    return _preempt(chosen, _runs_of(chosen.jobs), reason, actor)


def would_give_way(config: Configuration) -> Q:
    """Of jobs: they have a run that can be asked, and are of a class that is preemptible."""
    return of_preemptible_class(config) & Q(Exists(_runs().filter(job=OuterRef("pk"))))


def of_preemptible_class(config: Configuration) -> Q:
    """Of jobs: they are of a class that is preemptible."""
    return Q(priority_class__in=_preemptible(config))


def _runs() -> QuerySet[Run]:
    """Runs that can be asked to give way, and were not yet."""
    return Run.objects.filter(state__in=ACTIVE_RUN_STATES).exclude(ASKED_TO_GIVE_WAY)


def _runs_of(jobs: Collection[Job]) -> dict[str, tuple[str, str]]:
    """Job id → its run that can be asked, and the executor of it."""
    ids = [uuid_of(job.id) for job in jobs if job.state in OPEN_JOB_STATES]
    runs = _runs().filter(job__in=among(ids)).values_list("job_id", "id", "executor_id")
    return {job_id: (str(run_id), executor) for job_id, run_id, executor in runs}


def _preemptible(config: Configuration) -> list[str]:
    """Names of priority classes as jobs have them; jobs without one are of the default class."""
    names = [name for name, found in config.priority_classes.items() if found.preemptible]
    return [*names, ""] if config.default_priority_class_name in names else names


def _require_preemptible(jobs: Sequence[Job], config: Configuration) -> None:
    names = _preemptible(config)
    for job in jobs:
        if job.priority_class not in names:
            name = job.priority_class or config.default_priority_class_name
            raise Conflict(
                f"Job {job.id} is of priority class '{name}', which is not preemptible. Cancel it instead, or "
                f"submit jobs that may give way with a preemptible class."
            )


def _preempt(chosen: Chosen, runs: Mapping[str, tuple[str, str]], reason: str, actor: Actor) -> Preempting:
    """The jobs are locked, and the actor may."""
    reason = reason or PREEMPTED_ON_REQUEST
    asked = [job for job in chosen.jobs if job.id in runs]
    _ask(asked, reason, actor)
    Executor.objects.wake(executor for _, executor in runs.values())
    Change.objects.log_jobs(
        ChangeKind.PREEMPT_JOBS,
        [Moved(job.queue_id, job.id, job.state, "preempting") for job in asked],
        actor=actor.name,
        note=reason,
        selected=chosen.selected,
    )
    Event.objects.append(_events(asked, runs, reason, actor))  # last: it takes the numbers of the job sets
    return Preempting(
        preempting=tuple(job.id for job in asked),
        unchanged=tuple(job.id for job in chosen.jobs if job.id not in runs),
        more=chosen.more,
    )


def _ask(jobs: Sequence[Job], reason: str, actor: Actor) -> None:
    Job.objects.filter(id__in=among(uuid_of(job.id) for job in jobs)).update(
        preempt_requested_at=database_now(), preempt_user=actor.name, preempt_reason=reason
    )


def _events(
    jobs: Sequence[Job], runs: Mapping[str, tuple[str, str]], reason: str, actor: Actor
) -> list[NewEvent]:
    now = database_now()
    return [
        NewEvent(
            job_set_id=job.job_set_id,
            job_id=job.id,
            run_id=runs[job.id][0],
            kind=EventKind.PREEMPTING,
            created=now,
            payload=client_events.preempting(actor.name, reason=reason),
        )
        for job in jobs
    ]
