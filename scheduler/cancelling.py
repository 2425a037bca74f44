"""Cancel jobs: at once where nothing runs, else the run is told to end and its end finishes the job."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from scheduler import client_events
from scheduler.actors import Actor, Permission, QueueVerb
from scheduler.errors import Invalid, NotFound
from scheduler.models import Change, Event, Executor, Job, Run
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.ulids import ulid_of, uuid_of
from scheduler.states import ACTIVE_RUN_STATES, ChangeKind, EventKind, JobState

MAX_JOBS = 10_000
"""Jobs in one call."""
MAX_REASON_LENGTH = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
    """Ids of jobs by what became of them, each in the order asked."""

    cancelled: tuple[str, ...] = ()
    """Ended now: nothing of them was running."""
    cancelling: tuple[str, ...] = ()
    """Their runs were told to end; the jobs end with them."""
    unchanged: tuple[str, ...] = ()
    """Had ended, or were being cancelled, before."""


@transaction.atomic
def cancel_jobs(*, job_ids: Sequence[str], reason: str = "", actor: Actor) -> Cancelled:
    """Cancel jobs. Cancelling twice changes nothing: the first user and reason stay.

    All or none: raises NotPermitted where the actor may not cancel one of the jobs, and only then Invalid for
    what is no job id, NotFound for an unknown job.
    """
    ids, strange = _read_ids(job_ids)
    jobs = _locked(ids)
    _require_cancel(jobs.values(), actor)
    _check(ids, strange, jobs, reason)
    to_end = [
        job
        for job in jobs.values()
        if not JobState(job.state).is_terminal and job.state != JobState.CANCELLING
    ]
    executors = _executors_at_work(to_end)
    waits = {job.id for job in to_end if job.id in executors}
    at_once = {job.id for job in to_end} - waits
    now = database_now()
    _ask(waits, JobState.CANCELLING, None, now, reason, actor)
    _ask(at_once, JobState.CANCELLED, now, now, reason, actor)
    Executor.objects.wake(name for name in executors.values() if name)
    _log(to_end, at_once, reason, actor)
    Event.objects.append(_events(to_end, at_once, now, actor))  # last: it takes the numbers of the job sets
    return Cancelled(
        cancelled=tuple(job_id for job_id in ids if job_id in at_once),
        cancelling=tuple(job_id for job_id in ids if job_id in waits),
        unchanged=tuple(job_id for job_id in ids if job_id not in at_once and job_id not in waits),
    )


def _read_ids(job_ids: Sequence[str]) -> tuple[list[str], list[Invalid]]:
    """Ids as they are shown, each once, and what is wrong with the others."""
    if len(job_ids) > MAX_JOBS:
        raise Invalid(f"At most {MAX_JOBS:,} jobs are cancelled at once. Send the rest apart.", path="jobIds")
    found: dict[str, None] = {}
    strange = []
    for index, text in enumerate(job_ids):
        try:
            found[ulid_of(uuid_of(text))] = None
        except ValueError as error:
            strange.append(Invalid(str(error), path=f"jobIds[{index}]"))
    return list(found), strange


def _locked(ids: Sequence[str]) -> Mapping[str, Job]:
    rows = Job.objects.filter(id__in=ids).select_related("queue").order_by("id")
    return {job.id: job for job in rows.select_for_update(no_key=True, of=("self",))}


def _check(ids: Sequence[str], strange: Sequence[Invalid], jobs: Collection[str], reason: str) -> None:
    if strange:
        raise strange[0]
    if "\x00" in reason or len(reason) > MAX_REASON_LENGTH:
        raise Invalid(f"A reason has at most {MAX_REASON_LENGTH:,} characters. Shorten it.", path="reason")
    missing = [job_id for job_id in ids if job_id not in jobs]
    if missing:
        raise NotFound("job", missing[0])


def _require_cancel(jobs: Iterable[Job], actor: Actor) -> None:
    queues = {job.queue_id: job.queue for job in jobs}
    if not all(queue.allows(actor, QueueVerb.CANCEL) for queue in queues.values()):
        actor.require(Permission.CANCEL_ANY_JOBS)


def _executors_at_work(jobs: Sequence[Job]) -> dict[str, str]:
    """Job id → the executor that has a run of it; empty where a run ended and its settling ends the job."""
    unsettled = Q(ended_at__isnull=False, settled_at__isnull=True, settle_error="")
    runs = Run.objects.filter(Q(state__in=ACTIVE_RUN_STATES) | unsettled, job__in=[job.id for job in jobs])
    return {
        run.job_id: run.executor_id if run.ended_at is None else ""
        for run in runs.order_by("job_id", "number")
    }


def _ask(
    ids: set[str], state: JobState, ended_at: datetime | None, now: datetime, reason: str, actor: Actor
) -> None:
    Job.objects.filter(id__in=ids).update(
        state=state,
        state_changed_at=now,
        ended_at=ended_at,
        cancel_requested_at=now,
        cancel_user=actor.name,
        cancel_reason=reason,
        version=F("version") + 1,
    )


def _events(jobs: Iterable[Job], at_once: set[str], now: datetime, actor: Actor) -> list[NewEvent]:
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


def _log(jobs: Iterable[Job], at_once: set[str], reason: str, actor: Actor) -> None:
    """One entry for each queue: the states of its jobs before and after."""
    by_queue: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_queue[job.queue_id].append(job)
    Change.objects.bulk_create(
        Change(
            actor=actor.name,
            kind=ChangeKind.CANCEL_JOBS,
            subject=queue,
            before={job.id: job.state for job in theirs},
            after={job.id: _state_after(job, at_once) for job in theirs},
            note=reason,
        )
        for queue, theirs in by_queue.items()
    )


def _state_after(job: Job, at_once: set[str]) -> str:
    return JobState.CANCELLED if job.id in at_once else JobState.CANCELLING
