"""What is told of jobs that come."""

from collections.abc import Iterable
from typing import Any

from scheduler import client_events
from scheduler.models.events import NewEvent
from scheduler.models.jobs import Job
from scheduler.states import EventKind, JobState


def events_of_new(jobs: Iterable[Job]) -> list[NewEvent]:
    """Each job submitted and queued, and failed where it was rejected at once. Reads nothing: job sets are loaded."""
    return [
        NewEvent(
            job_set_id=job.job_set_id, job_id=job.id, kind=kind, created=job.submitted_at, payload=payload
        )
        for job in jobs
        for kind, payload in _told(job)
    ]


def _told(job: Job) -> Iterable[tuple[EventKind, dict[str, Any]]]:
    yield EventKind.SUBMITTED, client_events.submitted(_as_submitted(job))
    yield EventKind.QUEUED, {}
    if job.state == JobState.REJECTED:
        yield EventKind.FAILED, client_events.rejected(job.rejected_because)


def _as_submitted(job: Job) -> client_events.AsSubmitted:
    return client_events.AsSubmitted(
        job_id=job.id,
        client_id=job.client_id or "",
        job_set=job.job_set.name,
        queue=job.queue_id,
        namespace=job.namespace,
        labels=job.labels,
        annotations=job.annotations,
        owner=job.owner,
        priority=job.priority,
        priority_class=job.priority_class,
        submitted_at=job.submitted_at,
    )
