"""Rows of queued jobs that a round looks at, with what equal ones ask for told but once."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from scheduler.config import Configuration
from scheduler.planning import LEASES_PER_ROUND

type GangKey = tuple[str, str]
"""Queue and gang id."""

_AMOUNTS = ("cpu_request_millicores", "memory_request_bytes", "memory_limit_bytes")
OTHERS = ("resources", "node_selector", "affinity", "tolerations", "avoided_nodes", "needed_fields")
"""What a shape says beside amounts, by the names that `Requirements` has for it."""
_SHAPE = ", ".join((*_AMOUNTS, *OTHERS))
"""All that the requirements of a job depend on."""
_COLUMNS = """queue_id, id::text, version, priority_class, priority, submitted_at,
              gang_id, gang_cardinality, gang_uniformity_label"""

# Each queue's classes are found by their index, and of each no more is read than may be looked at. Jobs of a queue
# that ask for the same have the same shape, which is told of the first of them only. Members of gangs are counted
# apart: a gang may wait for others of its own while a job that is alone has room. Shapes are told apart by a hash:
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
                  row_number() OVER (PARTITION BY shape, gang_id <> ''
                                     ORDER BY job.priority, submitted_at, id) AS nth
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """The most that jobs could find in a pool, if all left that may have to give way."""

    cpu_millicores: int
    """Of all nodes together."""
    memory_bytes: int
    largest_cpu_millicores: int
    """Of one node."""
    largest_memory_bytes: int


class QueuedRow(NamedTuple):
    """A job that waits, as the queries have it. A hundred thousand may wait: hence a tuple."""

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


def rows_looked_at(space: Space, config: Configuration) -> list[QueuedRow]:
    """Of each queue those within the look-back limit, equal ones thinned out to what a round could start; one query."""
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


def _rows(statement: str, values: Mapping[str, Any]) -> list[QueuedRow]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [QueuedRow._make(row) for row in cursor.fetchall()]


def _most_at_once(config: Configuration) -> int:
    """Of equal jobs of a queue a round needs no more than it could start."""
    if config.maximum_per_queue_scheduling_rate:
        return min(LEASES_PER_ROUND, config.maximum_per_queue_scheduling_burst)
    return LEASES_PER_ROUND


def rows_of_members(gangs: Iterable[GangKey]) -> list[QueuedRow]:
    """All members of the gangs that wait, wherever in their queues; one query."""
    return _rows(_MEMBERS, asked_gangs(gangs))


def asked_gangs(keys: Iterable[GangKey]) -> dict[str, list[str]]:
    """Gangs as parameters: `queues` and `gangs`."""
    listed = list(keys)
    return {"queues": [queue for queue, _ in listed], "gangs": [gang for _, gang in listed]}
