"""Why queued jobs wait, in words: what the last round of each pool said about jobs like them."""

from collections.abc import Iterable

from scheduler.models import Executor, Job, Queue
from scheduler.queries.fleet import waiting_reasons
from scheduler.states import JobState


def waiting_because(job: Job) -> str:
    """Why a queued job waits, in a sentence; empty for every other job."""
    return reasons_for_waiting([job]).get(job.id, "")


def reasons_for_waiting(jobs: Iterable[Job]) -> dict[str, str]:
    """Job id → sentence, for those of the jobs that are queued; three queries when there are any."""
    queued = [job for job in jobs if job.state == JobState.QUEUED]
    if not queued:
        return {}
    names = {job.queue_id for job in queued}
    cordoned = set(Queue.objects.filter(name__in=names, cordoned=True).values_list("name", flat=True))
    told = waiting_reasons(queued)
    heard = Executor.objects.filter(heartbeat_at__isnull=False).exists()
    otherwise = "Waiting for the next round." if heard else "No executor has been heard of yet."
    return {
        job.id: _cordoned(job) if job.queue_id in cordoned else told.get(job.id, otherwise) for job in queued
    }


def _cordoned(job: Job) -> str:
    return f"Queue '{job.queue_id}' is cordoned: no job of it is started until it is uncordoned."
