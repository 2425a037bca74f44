"""The state of a pool that a round plans with, read in a constant number of queries outside any transaction."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from scheduler.config import Configuration
from scheduler.models import Pool, Queue
from scheduler.models.ulids import ulid_of
from scheduler.placement import Requirements, reserved_memory
from scheduler.planning import (
    LEASES_PER_ROUND,
    NodeState,
    PoolState,
    QueuedJob,
    QueueState,
    TokenBucket,
    Use,
)
from scheduler.queries.fleet import NodeUse, fleet_nodes, node_uses

type Rates = Mapping[str, tuple[float, str]]
"""Stored buckets: name of a queue, or empty for the pool → tokens and the time they were counted."""

# The hash only thins out equal jobs: should two shapes ever share one, some wait for the next round.
_WAITING_JOBS = """
    SELECT id, queue_id, version, priority, submitted_at, cpu_request_millicores, memory_request_bytes,
           memory_limit_bytes, resources::text, node_selector::text, avoided_nodes
      FROM (SELECT looked_at.*,
                   row_number() OVER (PARTITION BY queue_id, shape ORDER BY priority, submitted_at, id) AS nth
              FROM scheduler_queue q
        CROSS JOIN LATERAL (
                   SELECT j.*, hash_record_extended(
                              (cpu_request_millicores, memory_request_bytes, memory_limit_bytes, resources,
                               node_selector, avoided_nodes), 0) AS shape
                     FROM scheduler_job j
                    WHERE j.queue_id = q.name AND j.state = 'queued'
                 ORDER BY priority, submitted_at, id
                    LIMIT %s) AS looked_at
             WHERE NOT q.cordoned) AS numbered
     WHERE nth <= %s
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolSnapshot:
    """A pool as it was read, and what the last round left written."""

    state: PoolState
    at: datetime
    round_number: int
    """Of the last round written; a plan holds only while no other has been written."""
    unplaced: Mapping[str, str]
    held: Mapping[str, str]


class _Waiting(NamedTuple):
    id: UUID
    queue: str
    version: int
    priority: int
    submitted_at: datetime
    cpu_millicores: int
    memory_request: int | None
    memory_limit: int | None
    resources: str
    node_selector: str
    avoided_nodes: Sequence[str]


def pool_snapshot(pool: str, *, config: Configuration) -> PoolSnapshot | None:
    """Everything a round of the pool plans with; None for a pool nobody has heard of.

    The number of the last round is read first: whatever another round changes after that shows in it.
    """
    last = Pool.objects.filter(name=pool).values_list(
        "last_round__number",
        "last_round__unplaced",
        "last_round__held",
        "last_round__rates",
        Now(),
        named=False,
    )
    if (found := last.first()) is None:
        return None
    number, unplaced, held, rates, now = found
    uses = node_uses(pools=[pool])
    buckets = _Buckets(rates or {}, now, config)
    state = PoolState(
        nodes=_nodes(pool, uses, config),
        queues=_queues(uses, buckets, config),
        rate=buckets.of_pool(),
        node_id_label=config.node_id_label,
    )
    return PoolSnapshot(
        state=state, at=now, round_number=number or 0, unplaced=unplaced or {}, held=held or {}
    )


def stored_rates(pool: TokenBucket, queues: Mapping[str, TokenBucket]) -> dict[str, tuple[float, str]]:
    """The buckets as a round keeps them; a full one needs no keeping."""
    buckets = {"": pool, **queues}
    return {name: (b.tokens, b.at.isoformat()) for name, b in buckets.items() if not b.is_full}


class _Buckets:
    """The rate limits of a pool as they stand now."""

    def __init__(self, rates: Rates, now: datetime, config: Configuration) -> None:
        self._rates = rates
        self._now = now
        self._config = config

    def of_pool(self) -> TokenBucket:
        config = self._config
        return self._bucket("", config.maximum_scheduling_rate, config.maximum_scheduling_burst)

    def of_queue(self, name: str) -> TokenBucket:
        config = self._config
        return self._bucket(
            name, config.maximum_per_queue_scheduling_rate, config.maximum_per_queue_scheduling_burst
        )

    def _bucket(self, name: str, rate: float, burst: int) -> TokenBucket:
        full = TokenBucket.full(rate=rate, burst=burst, at=self._now)
        if name not in self._rates:
            return full
        tokens, at = self._rates[name]
        return replace(full, tokens=min(tokens, burst), at=datetime.fromisoformat(at)).refilled(self._now)


def _nodes(pool: str, uses: Sequence[NodeUse], config: Configuration) -> list[NodeState]:
    by_node: dict[tuple[str, str], list[NodeUse]] = defaultdict(list)
    for use in uses:
        by_node[use.executor, use.node].append(use)
    return [
        NodeState(capacity=node, used=_sum(by_node[node.executor, node.name]))
        for node in fleet_nodes(config=config, pool=pool)
    ]


def _queues(uses: Sequence[NodeUse], buckets: _Buckets, config: Configuration) -> list[QueueState]:
    by_queue: dict[str, list[NodeUse]] = defaultdict(list)
    for use in uses:
        by_queue[use.queue].append(use)
    waiting = _waiting_jobs(config)
    queues = Queue.objects.order_by("name").values_list("name", "priority_factor", "cordoned")
    return [
        QueueState(
            name=name,
            priority_factor=factor,
            cordoned=cordoned,
            used=_sum(by_queue[name]),
            jobs=waiting[name],
            rate=buckets.of_queue(name),
        )
        for name, factor, cordoned in queues
    ]


def _sum(uses: Iterable[NodeUse]) -> Use:
    cpu = memory = 0
    resources: dict[str, int] = defaultdict(int)
    for use in uses:
        cpu += use.cpu_millicores
        memory += use.memory_bytes
        for name, amount in use.resources.items():
            resources[name] += amount
    return Use(cpu_millicores=cpu, memory_bytes=memory, resources=resources)


def _waiting_jobs(config: Configuration) -> Mapping[str, Sequence[QueuedJob]]:
    """The queued jobs of each queue within the look-back limit, equal ones thinned out, in one query."""
    by_queue: dict[str, list[QueuedJob]] = defaultdict(list)
    known: dict[tuple[Any, ...], Requirements] = {}
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_JOBS, [config.max_queue_lookback, _most_at_once(config)])
        for waiting in map(_Waiting._make, cursor):
            by_queue[waiting.queue].append(_queued_job(waiting, known))
    return by_queue


def _most_at_once(config: Configuration) -> int:
    """Of equal jobs of a queue a round needs no more than it could start."""
    if config.maximum_per_queue_scheduling_rate:
        return min(LEASES_PER_ROUND, config.maximum_per_queue_scheduling_burst)
    return LEASES_PER_ROUND


def _queued_job(waiting: _Waiting, known: dict[tuple[Any, ...], Requirements]) -> QueuedJob:
    shape = (*waiting[5:-1], tuple(waiting.avoided_nodes))
    if (requirements := known.get(shape)) is None:
        requirements = known[shape] = _requirements(waiting)
    return QueuedJob(
        id=ulid_of(waiting.id),
        version=waiting.version,
        priority=waiting.priority,
        submitted_at=waiting.submitted_at,
        requirements=requirements,
    )


def _requirements(waiting: _Waiting) -> Requirements:
    return Requirements.from_amounts(
        cpu_millicores=waiting.cpu_millicores,
        memory_bytes=reserved_memory(request=waiting.memory_request, limit=waiting.memory_limit),
        resources=json.loads(waiting.resources),
        node_selector=json.loads(waiting.node_selector),
        avoided_nodes=waiting.avoided_nodes,
    )
