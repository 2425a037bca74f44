"""Why queued jobs wait, in words: what the last round of each pool said about jobs like them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from scheduler.configured import configuration
from scheduler.errors import NotFound
from scheduler.models import Executor, Job, PoolRound, Queue
from scheduler.models.bulk import among
from scheduler.models.ulids import uuid_of
from scheduler.placement import Requirements
from scheduler.queries.cordons import OPEN, Cordon, cordons_of
from scheduler.states import JobState

LOOKED_AT = 1_000
"""Of the jobs of a queue, for the reasons it has; those that go first."""
_LEFT_OUT = ("annotations", "labels")
ASKED_OF_NODES = frozenset({"node_selector", "affinity", "tolerations", "needed_fields"})
"""Of jobs that wait: lists of jobs leave it out."""
_AMOUNTS = (
    "cpu_request_millicores", "memory_request_bytes", "memory_limit_bytes", "resources", "avoided_nodes",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """A sentence, and how many jobs wait for it."""

    sentence: str
    jobs: int
    job_id: str
    """One of them: the one that goes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueWaiting:
    """Why jobs of a queue wait."""

    reasons: Sequence[Reason]
    """The most frequent first."""
    looked_at: int
    is_cut: bool
    """More wait than were looked at."""


def waiting_because(job: Job) -> str:
    """Why a queued job waits, in a sentence; empty for every other job."""
    return reasons_for_waiting([job]).get(job.id, "")


def reasons_for_waiting(jobs: Iterable[Job]) -> dict[str, str]:
    """Job id → sentence, for those of the jobs that are queued; at most five queries."""
    queued = [job for job in jobs if job.state == JobState.QUEUED]
    if not queued:
        return {}
    names = {job.queue_id for job in queued}
    cordoned = _cordoned(names)
    rounds = list(PoolRound.objects.order_by("pool_id"))
    heard = Executor.objects.filter(heartbeat_at__isnull=False).exists()
    otherwise = "Waiting for the next round." if heard else "No executor has been heard of yet."
    told = {job.id: _told(job, rounds) for job in _whole(queued)} if rounds else {}
    return {job.id: cordoned.get(job.queue_id) or told.get(job.id) or otherwise for job in queued}


def _whole(jobs: Sequence[Job]) -> Sequence[Job]:
    """The same with all that they ask of nodes, which lists leave out; one query when any lacks it."""
    if not any(job.get_deferred_fields() & ASKED_OF_NODES for job in jobs):
        return jobs
    rows = Job.objects.filter(id__in=among(uuid_of(job.id) for job in jobs))
    return list(rows.only("queue", "gang_id", "priority_class", *_AMOUNTS, *ASKED_OF_NODES))


def waiting_in(queue: str) -> QueueWaiting:
    """Why the jobs of a queue wait that go first in it; five queries. Raises NotFound."""
    if not Queue.objects.filter(name=queue).exists():
        raise NotFound("queue", queue)
    order = ("priority_class", "priority", "submitted_at", "id")
    waiting = Job.objects.filter(queue=queue, state=JobState.QUEUED).defer(*_LEFT_OUT).order_by(*order)
    found = list(waiting[: LOOKED_AT + 1])
    jobs = found[:LOOKED_AT]
    by_sentence: dict[str, list[str]] = defaultdict(list)
    for job_id, sentence in reasons_for_waiting(jobs).items():
        by_sentence[sentence].append(job_id)
    reasons = [
        Reason(sentence=sentence, jobs=len(ids), job_id=ids[0]) for sentence, ids in by_sentence.items()
    ]
    return QueueWaiting(
        reasons=sorted(reasons, key=lambda reason: -reason.jobs),
        looked_at=len(jobs),
        is_cut=len(found) > LOOKED_AT,
    )


def _told(job: Job, rounds: Sequence[PoolRound]) -> str:
    """What the last rounds said of such jobs; nothing before the first one after their submission."""
    key = Requirements.of(job).key
    found = {last.pool_id: reason for last in rounds if (reason := _reason(job, key, last))}
    if len(found) < 2:
        return "".join(found.values())
    return " ".join(f"Pool {pool}: {reason}" for pool, reason in found.items())


def _reason(job: Job, key: str, last: PoolRound) -> str:
    priority_class = job.priority_class or configuration().default_priority_class_name
    own = last.gangs.get(job.queue_id, {}).get(job.gang_id) if job.gang_id else last.unplaced.get(key)
    limited = last.limited.get(job.queue_id, {}).get(priority_class)
    return str(own or limited or last.held.get(job.queue_id) or "")


def _cordoned(names: Collection[str]) -> dict[str, str]:
    """Those of the queues that are cordoned, with a sentence that says who did it and why."""
    cordoned = list(Queue.objects.filter(name__in=names, cordoned=True).values_list("name", flat=True))
    if not cordoned:
        return {}
    by = cordons_of(cordoned)
    return {name: _cordoned_by(name, by.get(name, OPEN)) for name in cordoned}


def _cordoned_by(name: str, cordon: Cordon) -> str:
    if not cordon.by:
        return f"Queue '{name}' is cordoned: no job of it is started until it is uncordoned."
    why = f": {cordon.reason.rstrip('.')}" if cordon.reason else ""
    return f"Queue '{name}' is cordoned by {cordon.by}{why}. No job of it is started until it is uncordoned."
