"""Read the events of a job set by their numbers, as clients see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.client_events import wire_time
from scheduler.errors import Invalid, NotFound
from scheduler.fields import is_line
from scheduler.models import Event, JobSet, Queue

MAX_LIMIT = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSetEvent:
    """An event as on the wire."""

    id: int
    """Counts from 1 within the job set, in the order of commits, without gaps."""
    message: Mapping[str, Mapping[str, Any]]
    """One key, the kind of event, to its fields: `{"failed": {"jobId": …}}`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventPage:
    """Some events of a job set, in order."""

    events: tuple[JobSetEvent, ...]
    last: int
    """The number to go on from: of the last event here, or the one asked for where there is none."""


def events_after(
    queue: str, job_set: str, after: int = 0, limit: int = 1_000, *, error_if_missing: bool = False
) -> EventPage:
    """Events of a job set with numbers above `after`, in two queries.

    A job set that does not exist yet has none. Raises NotFound for an unknown queue (and job set, where
    that is an error), Invalid for a limit that makes no sense.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"limit takes a number from 1 to {MAX_LIMIT:,}.", path="limit")
    if not 0 <= after < 2**63:
        raise Invalid("from takes the number of an event, 0 for the beginning.", path="from")
    found = _job_set(queue, job_set)
    if found is None and error_if_missing:
        raise NotFound("job set", f"{queue}/{job_set}")
    rows = Event.objects.filter(job_set=found, number__gt=after).order_by("number")[:limit] if found else ()
    events = tuple(job_set_event(row, queue=queue, job_set=job_set) for row in rows)
    return EventPage(events=events, last=events[-1].id if events else after)


def job_set_event(row: Event, *, queue: str, job_set: str) -> JobSetEvent:
    """A row as on the wire; the fields of its kind follow those that every event has."""
    fields = {
        "jobId": row.job_id,
        "jobSetId": job_set,
        "queue": queue,
        "created": wire_time(row.created),
        **row.payload,
    }
    return JobSetEvent(id=row.number, message={row.kind: fields})


def _job_set(queue: str, name: str) -> JobSet | None:
    if not is_line(queue) or not is_line(name):
        raise NotFound("queue", queue[:60])
    found = JobSet.objects.filter(queue=queue, name=name).first()
    if found is None and not Queue.objects.filter(name=queue).exists():
        raise NotFound("queue", queue)
    return found
