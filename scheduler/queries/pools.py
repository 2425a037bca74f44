"""The state of a pool that a round plans with, read in a constant number of queries outside any transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models.functions import Now

from scheduler.config import Configuration
from scheduler.models import Pool, Queue
from scheduler.planning import NodeState, Plan, PoolState, PriorityClass, QueueState, TokenBucket, Use
from scheduler.queries.fleet import ClassUse, Uses, fleet_nodes, uses
from scheduler.queries.giving_way import classes_that_stay, runs_that_may_give_way
from scheduler.queries.queued import waiting_jobs
from scheduler.queries.queued_rows import Space

TOLD = ("unplaced", "held", "gangs", "limited")
"""What a round keeps of what its plan said, by the names of its columns."""

type Rates = Mapping[str, tuple[float, str]]
"""Stored buckets: name of a queue, or empty for the pool → tokens and the time they were counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolSnapshot:
    """A pool as it was read, and what the last round left written."""

    state: PoolState
    at: datetime
    round_number: int
    """Of the last round written; a plan holds only while no other has been written."""
    told: Mapping[str, Any]
    """What that round said of jobs it did not place, in the shape of `told_of`."""


def pool_snapshot(pool: str, *, config: Configuration) -> PoolSnapshot | None:
    """Everything a round of the pool plans with; None for a pool nobody has heard of.

    The number of the last round is read first: whatever another round changes after that shows in it.
    """
    last = Pool.objects.filter(name=pool).values_list(
        "last_round__number",
        "last_round__rates",
        *(f"last_round__{name}" for name in TOLD),
        Now(),
        named=False,
    )
    if (found := last.first()) is None:
        return None
    number, rates, *told, now = found
    held = uses(pools=[pool])
    buckets = _Buckets(rates or {}, now, config)
    nodes = _nodes(pool, held, config)
    queues = _queues(held, buckets, _space(nodes, held, config), config)
    state = PoolState(
        nodes=nodes,
        queues=queues,
        running=runs_that_may_give_way(pool, (job for queue in queues for job in queue.jobs), config=config),
        rate=buckets.of_pool(),
        **_rules(pool, config),
    )
    return PoolSnapshot(
        state=state,
        at=now,
        round_number=number or 0,
        told={name: value or {} for name, value in zip(TOLD, told, strict=True)},
    )


def told_of(planned: Plan) -> dict[str, Any]:
    """What a plan says of jobs it does not place, as the round keeps it."""
    return {
        "unplaced": dict(planned.unplaced),
        "held": dict(planned.held),
        "gangs": {queue: dict(reasons) for queue, reasons in planned.gangs.items()},
        "limited": {queue: dict(reasons) for queue, reasons in planned.limited.items()},
    }


def stored_rates(pool: TokenBucket, queues: Mapping[str, TokenBucket]) -> dict[str, tuple[float, str]]:
    """The buckets as a round keeps them; a full one needs no keeping."""
    buckets = {"": pool, **queues}
    return {name: (b.tokens, b.at.isoformat()) for name, b in buckets.items() if not b.is_full}


def _rules(pool: str, config: Configuration) -> dict[str, Any]:
    """What a plan goes by besides rows."""
    classes = config.priority_classes
    limits = {name: found.limits_in(pool) for name, found in classes.items()}
    return {
        "node_id_label": config.node_id_label,
        "priority_classes": {
            name: PriorityClass(name=name, priority=found.priority, preemptible=found.preemptible)
            for name, found in classes.items()
        },
        "fair_share_resources": config.fair_share_resources,
        "protected_fraction": config.protected_fraction_of_fair_share,
        "limits": {name: limit for name, limit in limits.items() if limit},
    }


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


def _nodes(pool: str, held: Uses, config: Configuration) -> list[NodeState]:
    return [
        NodeState(capacity=node, used=_sum(held.of_nodes.get((node.executor, node.name), ())))
        for node in fleet_nodes(config=config, pool=pool)
    ]


def _space(nodes: Iterable[NodeState], held: Uses, config: Configuration) -> Space:
    highest = max(0, *(found.priority for found in config.priority_classes.values()))
    stay = classes_that_stay(highest, config)
    cpu, memory = [], []
    for node in (state.capacity for state in nodes if state.capacity.schedulable):
        uses_of_it = held.of_nodes.get((node.executor, node.name), ())
        used = _sum(use for use in uses_of_it if use.priority_class in stay)
        cpu.append(max(0, node.cpu_millicores - used.cpu_millicores))
        memory.append(max(0, node.memory_bytes - used.memory_bytes))
    return Space(
        cpu_millicores=sum(cpu),
        memory_bytes=sum(memory),
        largest_cpu_millicores=max(cpu, default=0),
        largest_memory_bytes=max(memory, default=0),
    )


def _queues(held: Uses, buckets: _Buckets, space: Space, config: Configuration) -> list[QueueState]:
    waiting = waiting_jobs(space, config)
    queues = Queue.objects.order_by("name").values_list("name", "priority_factor", "cordoned")
    return [
        QueueState(
            name=name,
            priority_factor=factor,
            cordoned=cordoned,
            used=_sum(held.of_queues.get(name, ())),
            used_by_class=_by_class(held.of_queues.get(name, ()), config),
            jobs=waiting[name].jobs if name in waiting else (),
            rate=buckets.of_queue(name),
            looked_back=config.max_queue_lookback if name in waiting and waiting[name].is_cut else 0,
        )
        for name, factor, cordoned in queues
    ]


def _by_class(held: Iterable[ClassUse], config: Configuration) -> dict[str, Use]:
    found: dict[str, list[ClassUse]] = defaultdict(list)
    for use in held:
        found[use.priority_class or config.default_priority_class_name].append(use)
    return {name: _sum(theirs) for name, theirs in found.items()}


def _sum(held: Iterable[ClassUse]) -> Use:
    cpu = memory = 0
    resources: dict[str, int] = defaultdict(int)
    for use in held:
        cpu += use.cpu_millicores
        memory += use.memory_bytes
        for name, amount in use.resources.items():
            resources[name] += amount
    return Use(cpu_millicores=cpu, memory_bytes=memory, resources=resources)
