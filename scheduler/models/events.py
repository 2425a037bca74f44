"""Events: a job's history, numbered without gaps per job set in commit order."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.db.models import CompositePrimaryKey

from scheduler.models.bulk import copy_rows
from scheduler.models.checks import one_of
from scheduler.models.jobs import Job, JobSet
from scheduler.models.ulids import uuid_of
from scheduler.states import EventKind

_TAKE_NUMBERS = """
    WITH asked(id, n) AS (SELECT * FROM unnest(%s::bigint[], %s::bigint[])),
         held AS (SELECT s.id FROM scheduler_jobset s JOIN asked ON asked.id = s.id ORDER BY s.id FOR NO KEY UPDATE OF s)
    UPDATE scheduler_jobset s SET last_event = s.last_event + asked.n
      FROM asked JOIN held ON held.id = asked.id WHERE s.id = asked.id
 RETURNING s.id, s.last_event - asked.n
"""

_COLUMNS = ("job_set_id", "number", "job_id", "run_id", "kind", "created", "payload")


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """An event about to be written."""

    job_set_id: int
    job_id: str
    kind: EventKind
    created: datetime
    run_id: UUID | str | None = None
    payload: dict[str, Any] = field(default_factory=dict)


class EventManager(models.Manager["Event"]):
    """Appends, and nothing else."""

    def append(self, events: Iterable[NewEvent]) -> None:
        """Number and write the events, in their order, as the last statements of a transaction.

        The rows of the job sets stay locked until the commit: numbers have no gaps, follow the order of
        commits, and a reader that has seen number n has seen all before it.
        """
        new = list(events)
        if not new:
            return
        counts: dict[int, int] = defaultdict(int)
        for event in new:
            counts[event.job_set_id] += 1
        with connection.cursor() as cursor:
            cursor.execute(_TAKE_NUMBERS, [list(counts), list(counts.values())])
            last = dict(cursor.fetchall())
        copy_rows("scheduler_event", _COLUMNS, (_row(event, last) for event in new))


def _row(event: NewEvent, last: dict[int, int]) -> tuple[object, ...]:
    last[event.job_set_id] += 1
    number, payload = last[event.job_set_id], json.dumps(event.payload)
    job_id = uuid_of(event.job_id)
    return event.job_set_id, number, job_id, event.run_id, event.kind, event.created, payload


class Event(models.Model):
    """Something that happened to a job."""

    pk = CompositePrimaryKey("job_set_id", "number")
    job_set = models.ForeignKey(JobSet, models.CASCADE, related_name="events", db_index=False)
    number = models.BigIntegerField()
    """`fromMessageId`: counts from 1 within the job set."""
    job = models.ForeignKey(Job, models.CASCADE, related_name="events")
    run_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=20)
    created = models.DateTimeField()
    payload = models.JSONField(default=dict)
    """Fields of the client event beyond jobId, jobSetId, queue and created, named as on the wire."""

    objects = EventManager()

    class Meta:
        constraints = [one_of("event_kind_known", "kind", EventKind)]

    def __str__(self) -> str:
        return f"{self.kind} of {self.job_id}"
