"""The queued jobs a round looks at: each queue's within the look-back limit, gangs with all their members."""

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from scheduler.config import Configuration
from scheduler.models.ulids import ulid_of_text
from scheduler.placement import Requirements, reserved_memory
from scheduler.planning import LEASES_PER_ROUND, Gang, QueuedJob

type GangKey = tuple[str, str]
"""Queue and gang id."""

_AMOUNTS = ("cpu_request_millicores", "memory_request_bytes", "memory_limit_bytes")
_OTHERS = ("resources", "node_selector", "affinity", "tolerations", "avoided_nodes", "needed_fields")
_SHAPE = ", ".join((*_AMOUNTS, *_OTHERS))
"""All that the requirements of a job depend on."""
_COLUMNS = """queue_id, id::text, version, priority_class, priority, submitted_at,
              gang_id, gang_cardinality, gang_uniformity_label"""

# Each queue's classes are found by their index, and of each no more is read than may be looked at. Jobs of a queue
# that ask for the same have the same shape, which is told of the first of them only. Shapes are told apart by a hash:
# each round has a seed of its own, so that nobody can make two jobs share one, and chance not twice.
_WAITING = f"""
    WITH RECURSIVE class AS (
        SELECT q.name AS queue, (SELECT min(j.priority_class) FROM scheduler_job j
                                  WHERE j.queue_id = q.name AND j.state = 'queued') AS name
          FROM scheduler_queue q WHERE NOT q.cordoned
     UNION ALL
        SELECT class.queue, (SELECT min(j.priority_class) FROM scheduler_job j
                              WHERE j.queue_id = class.queue AND j.state = 'queued'
                                AND j.priority_class > class.name)
          FROM class WHERE class.name IS NOT NULL
    ), queue AS (
        SELECT queue AS name, array_agg(name) AS classes FROM class WHERE name IS NOT NULL GROUP BY queue
    )
    SELECT {_COLUMNS}, is_cut, shape,
           CASE WHEN nth = 1 THEN (SELECT json_build_array({_SHAPE})::text
                                     FROM scheduler_job first WHERE first.id = looked_at.id) END
      FROM queue CROSS JOIN LATERAL (
           SELECT job.*,
                  row_number() OVER (ORDER BY coalesce(rank.priority, 0) DESC, job.priority, submitted_at, id) AS turn,
                  count(*) OVER () > %(lookback)s AS is_cut,
                  row_number() OVER (PARTITION BY shape ORDER BY job.priority, submitted_at, id) AS nth
             FROM unnest(queue.classes) AS class(name)
        LEFT JOIN unnest(%(classes)s::text[], %(priorities)s::int[]) AS rank(name, priority) USING (name)
       CROSS JOIN LATERAL (
                  SELECT id, queue_id, version, priority_class, priority, submitted_at,
                         gang_id, gang_cardinality, gang_uniformity_label, cpu_request_millicores AS cpu,
                         coalesce(greatest(memory_request_bytes, memory_limit_bytes), 0) AS memory,
                         hash_record_extended((priority_class, {_SHAPE}), %(seed)s) AS shape
                    FROM scheduler_job j
                   WHERE j.queue_id = queue.name AND j.state = 'queued' AND j.priority_class = class.name
                ORDER BY priority, submitted_at, id
                   LIMIT %(lookback)s + 1) AS job) AS looked_at
     WHERE turn <= %(lookback)s
       AND (nth = 1 OR gang_id <> ''
            OR nth <= %(most)s AND cpu <= %(largest_cpu_millicores)s AND memory <= %(largest_memory_bytes)s
               AND nth::float8 * cpu <= %(cpu_millicores)s AND nth::float8 * memory <= %(memory_bytes)s)
"""  # noqa: S608 - what is put in stands above
_MEMBERS = f"""
    SELECT {_COLUMNS}, true, NULL, json_build_array({_SHAPE})::text
      FROM unnest(%(queues)s::text[], %(gangs)s::text[]) AS asked(queue, gang)
      JOIN scheduler_job ON queue_id = asked.queue AND gang_id = asked.gang
     WHERE state = 'queued'
"""  # noqa: S608 - what is put in stands above
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
class Space:
    """The most that jobs could find in a pool, if all left that may have to give way."""

    cpu_millicores: int
    """Of all nodes together."""
    memory_bytes: int
    largest_cpu_millicores: int
    """Of one node."""
    largest_memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What waits in one queue."""

    jobs: Sequence[QueuedJob] = ()
    is_cut: bool = False
    """More wait beyond the look-back limit."""


class _Row(NamedTuple):
    queue: str
    id: str
    """As the database writes a uuid."""
    version: int
    priority_class: str
    priority: int
    submitted_at: datetime
    gang_id: str
    gang_cardinality: int
    gang_label: str
    is_cut: bool
    shape: int | None
    """Told once for all jobs of the queue that have it; None where each tells its own."""
    told: str | None
    """The shape, as JSON."""


def waiting_jobs(space: Space, config: Configuration) -> Mapping[str, Waiting]:
    """The jobs that wait, by queue, in three queries at most.

    Equal jobs of a queue are thinned out to what a round could start in so much space; where that is none, one is
    left, by which the plan says why.
    """
    rows = _looked_at(space, config)
    gangs = _Gangs(row for row in rows if row.gang_id)
    rows += _missing_members(gangs, rows)
    shapes = _Shapes(rows)
    jobs: dict[str, list[QueuedJob]] = defaultdict(list)
    for row in rows:
        jobs[row.queue].append(_queued_job(row, gangs.of(row), shapes.of(row), config))
    cut = {row.queue for row in rows if row.is_cut}
    return {queue: Waiting(jobs=found, is_cut=queue in cut) for queue, found in jobs.items()}


def _looked_at(space: Space, config: Configuration) -> list[_Row]:
    priorities = {name: found.priority for name, found in config.priority_classes.items()}
    priorities[""] = priorities[config.default_priority_class_name]
    values = {
        "classes": list(priorities),
        "priorities": list(priorities.values()),
        "lookback": config.max_queue_lookback,
        "most": _most_at_once(config),
        "seed": secrets.randbits(63),
        **asdict(space),
    }
    return _rows(_WAITING, values)


def _rows(statement: str, values: Mapping[str, Any]) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [_Row._make(row) for row in cursor.fetchall()]


def _most_at_once(config: Configuration) -> int:
    """Of equal jobs of a queue a round needs no more than it could start."""
    if config.maximum_per_queue_scheduling_rate:
        return min(LEASES_PER_ROUND, config.maximum_per_queue_scheduling_burst)
    return LEASES_PER_ROUND


@dataclass(kw_only=True, slots=True)
class _Members:
    """Those of one gang that wait, as far as they are known."""

    first: _Row
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

    def __init__(self, rows: Iterable[_Row]) -> None:
        self._members: dict[GangKey, _Members] = {}
        for row in rows:
            members = self._members.setdefault(_key(row), _Members(first=row, since=row.submitted_at))
            members.waiting += 1
            members.since = min(members.since, row.submitted_at)
        self._look_for_placed()
        self._gangs = {key: members.as_gang() for key, members in self._members.items()}

    def of(self, row: _Row) -> Gang | None:
        return self._gangs[_key(row)] if row.gang_id else None

    def incomplete(self) -> list[GangKey]:
        """Of which members may lie beyond the look-back limit."""
        return [key for key, each in self._members.items() if each.first.is_cut and each.are_missing]

    def _look_for_placed(self) -> None:
        if not self._members:
            return
        found = self._members.values()
        values: dict[str, Any] = {
            **_asked(self._members),
            "labels": [each.first.gang_label for each in found],
            "since": [each.since for each in found],
        }
        with connection.cursor() as cursor:
            cursor.execute(_PLACED, values)
            for queue, gang, count, value in cursor:
                self._members[queue, gang].placed = count
                self._members[queue, gang].value = value


def _key(row: _Row) -> GangKey:
    return row.queue, row.gang_id


def _asked(keys: Iterable[GangKey]) -> dict[str, list[str]]:
    listed = list(keys)
    return {"queues": [queue for queue, _ in listed], "gangs": [gang for _, gang in listed]}


def _missing_members(gangs: _Gangs, rows: Iterable[_Row]) -> list[_Row]:
    """Members that wait beyond the look-back limit, of gangs that wait within it."""
    if not (incomplete := gangs.incomplete()):
        return []
    known = {row.id for row in rows}
    return [row for row in _rows(_MEMBERS, _asked(incomplete)) if row.id not in known]


class _Shapes:
    """What the jobs of rows ask for. Those of equal jobs are one value, whatever their queues."""

    def __init__(self, rows: Iterable[_Row]) -> None:
        self._known: dict[str, Requirements] = {}
        self._shapes = {(row.queue, row.shape): self._read(row.told) for row in rows if row.told}

    def of(self, row: _Row) -> Requirements:
        return self._read(row.told) if row.told else self._shapes[row.queue, row.shape]

    def _read(self, told: str) -> Requirements:
        if (known := self._known.get(told)) is None:
            known = self._known[told] = _requirements(*json.loads(told))
        return known


def _queued_job(row: _Row, gang: Gang | None, requirements: Requirements, config: Configuration) -> QueuedJob:
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
        **dict(zip(_OTHERS, others, strict=True)),
    )
