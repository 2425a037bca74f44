"""The queued jobs a round looks at: each queue's within the look-back limit, gangs with all their members."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from scheduler.config import Configuration
from scheduler.models.ulids import ulid_of_text
from scheduler.placement import Requirements, reserved_memory
from scheduler.planning import Gang, QueuedJob
from scheduler.queries.queued_rows import (
    OTHERS,
    GangKey,
    QueuedRow,
    Space,
    asked_gangs,
    rows_looked_at,
    rows_of_members,
)

# A gang's id may be used again once all of the gang has ended, so whoever succeeded before the others were
# submitted was of another one.
_PLACED = """
    SELECT asked.queue, asked.gang, count(*), coalesce(min(n.labels ->> asked.label), '')
      FROM unnest(%(queues)s::text[], %(gangs)s::text[], %(labels)s::text[], %(since)s::timestamptz[])
           AS asked(queue, gang, label, since)
      JOIN scheduler_job j ON j.queue_id = asked.queue AND j.gang_id = asked.gang
      JOIN scheduler_run r ON r.job_id = j.id AND r.number = j.run_count
 LEFT JOIN scheduler_node n ON n.executor_id = r.executor_id AND n.name = r.node
     WHERE j.state IN ('leased', 'pending', 'running') OR j.state = 'succeeded' AND j.ended_at >= asked.since
  GROUP BY 1, 2
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What waits in one queue."""

    jobs: Sequence[QueuedJob] = ()
    is_cut: bool = False
    """More wait beyond the look-back limit."""


def waiting_jobs(space: Space, config: Configuration) -> Mapping[str, Waiting]:
    """The jobs that wait, by queue, in three queries at most.

    Equal jobs of a queue are thinned out to what a round could start in so much space; where that is none, one is
    left, by which the plan says why.
    """
    rows = rows_looked_at(space, config)
    gangs = _Gangs(row for row in rows if row.gang_id)
    rows += _missing_members(gangs, rows)
    shapes = _Shapes(rows)
    jobs: dict[str, list[QueuedJob]] = defaultdict(list)
    for row in rows:
        jobs[row.queue].append(_queued_job(row, gangs.of(row), shapes.of(row), config))
    cut = {row.queue for row in rows if row.is_cut}
    return {queue: Waiting(jobs=found, is_cut=queue in cut) for queue, found in jobs.items()}


@dataclass(kw_only=True, slots=True)
class _Members:
    """Those of one gang that wait, as far as they are known."""

    first: QueuedRow
    waiting: int = 0
    since: datetime
    placed: int = 0
    value: str = ""

    @property
    def are_missing(self) -> bool:
        return self.waiting + self.placed < self.first.gang_cardinality

    def as_gang(self) -> Gang:
        return Gang(
            id=self.first.gang_id,
            cardinality=self.first.gang_cardinality,
            uniformity_label=self.first.gang_label,
            placed=self.placed,
            uniformity_value=self.value,
        )


class _Gangs:
    """The gangs among waiting jobs, with what is known of members that have started; one query where there are any."""

    def __init__(self, rows: Iterable[QueuedRow]) -> None:
        self._members: dict[GangKey, _Members] = {}
        for row in rows:
            members = self._members.setdefault(_key(row), _Members(first=row, since=row.submitted_at))
            members.waiting += 1
            members.since = min(members.since, row.submitted_at)
        self._look_for_placed()
        self._gangs = {key: members.as_gang() for key, members in self._members.items()}

    def of(self, row: QueuedRow) -> Gang | None:
        return self._gangs[_key(row)] if row.gang_id else None

    def incomplete(self) -> list[GangKey]:
        """Of which members may lie beyond the look-back limit."""
        return [key for key, each in self._members.items() if each.first.is_cut and each.are_missing]

    def _look_for_placed(self) -> None:
        if not self._members:
            return
        found = self._members.values()
        values: dict[str, Any] = {
            **asked_gangs(self._members),
            "labels": [each.first.gang_label for each in found],
            "since": [each.since for each in found],
        }
        with connection.cursor() as cursor:
            cursor.execute(_PLACED, values)
            for queue, gang, count, value in cursor:
                self._members[queue, gang].placed = count
                self._members[queue, gang].value = value


def _key(row: QueuedRow) -> GangKey:
    return row.queue, row.gang_id


def _missing_members(gangs: _Gangs, rows: Iterable[QueuedRow]) -> list[QueuedRow]:
    """Members that wait beyond the look-back limit, of gangs that wait within it."""
    if not (incomplete := gangs.incomplete()):
        return []
    known = {row.id for row in rows}
    return [row for row in rows_of_members(incomplete) if row.id not in known]


class _Shapes:
    """What the jobs of rows ask for. Those of equal jobs are one value, whatever their queues."""

    def __init__(self, rows: Iterable[QueuedRow]) -> None:
        self._known: dict[str, Requirements] = {}
        self._shapes = {(row.queue, row.shape): self._read(row.told) for row in rows if row.told}

    def of(self, row: QueuedRow) -> Requirements:
        return self._read(row.told) if row.told else self._shapes[row.queue, row.shape]

    def _read(self, told: str) -> Requirements:
        if (known := self._known.get(told)) is None:
            known = self._known[told] = _requirements(*json.loads(told))
        return known


def _queued_job(
    row: QueuedRow, gang: Gang | None, requirements: Requirements, config: Configuration
) -> QueuedJob:
    return QueuedJob(
        id=ulid_of_text(row.id),
        version=row.version,
        priority_class=row.priority_class or config.default_priority_class_name,
        priority=row.priority,
        submitted_at=row.submitted_at,
        requirements=requirements,
        gang=gang,
    )


def _requirements(  # the columns of a shape, in their order
    cpu_millicores: int, memory_request: int | None, memory_limit: int | None, *others: Any
) -> Requirements:
    return Requirements.from_amounts(
        cpu_millicores=cpu_millicores,
        memory_bytes=reserved_memory(request=memory_request, limit=memory_limit),
        **dict(zip(OTHERS, others, strict=True)),
    )
