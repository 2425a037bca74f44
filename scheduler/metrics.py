"""What is counted for whoever watches Tack from outside: each total, its labels, and whether it starts anew."""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from scheduler.settlement import Settlement
from scheduler.states import UndecidedBecause

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds, in seconds, of the classes that times are counted in; what takes longer has a class of its own."""
BEYOND = "+Inf"


class Metric(StrEnum):
    """A set of totals that is kept in rows. The labels of each stand in `LABELS`."""

    DECISIONS = "decisions"
    GANG_SKIPS = "gang_skips"
    REMOVED = "removed"
    FAILURES_BY_QUEUE = "failures_by_queue"
    FAILURES_BY_NODE = "failures_by_node"
    SETTLE_TIMES = "settle_times"
    SETTLE_SECONDS = "settle_seconds"
    ROUND_TIMES = "round_times"
    ROUND_SECONDS = "round_seconds"

    @property
    def is_reset(self) -> bool:
        """The total starts from nothing every `metrics.jobStateMetricsResetInterval`."""
        return self in (self.DECISIONS, self.FAILURES_BY_QUEUE, self.FAILURES_BY_NODE)


LABELS: Mapping[Metric, tuple[str, ...]] = {
    Metric.DECISIONS: ("queue", "pool", "policy", "decision"),
    Metric.GANG_SKIPS: ("policy",),
    Metric.REMOVED: ("what",),
    Metric.FAILURES_BY_QUEUE: ("queue", "pool", "category", "subcategory"),
    Metric.FAILURES_BY_NODE: ("node", "pool", "cluster", "category", "subcategory"),
    Metric.SETTLE_TIMES: ("le",),
    Metric.SETTLE_SECONDS: (),
    Metric.ROUND_TIMES: ("pool", "le"),
    Metric.ROUND_SECONDS: ("pool",),
}


class Count(NamedTuple):
    """What is added to: a metric and the values of its labels, in their order."""

    metric: Metric
    labels: tuple[str, ...] = ()


type Seat = tuple[str, str, str]
"""Where runs were, as far as totals tell them apart: pool, executor, node."""


def counts_of(
    settlement: Settlement, *, queue: str, seats: Mapping[Seat, int]
) -> Iterator[tuple[Count, int]]:
    """What runs that were settled alike add to the totals; `seats` tells how many of them were where."""
    pools: Tally[str] = Tally()
    for (pool, _, _), runs in seats.items():
        pools[pool] += runs
    for pool, runs in pools.items():
        for count in _counts_in_pool(settlement, queue, pool):
            yield count, runs
    if settlement.is_failure:
        category = _category(settlement)
        for (pool, executor, node), runs in seats.items():
            yield Count(Metric.FAILURES_BY_NODE, (node, pool, executor, *category)), runs


def _counts_in_pool(settlement: Settlement, queue: str, pool: str) -> Iterator[Count]:
    governing, decision = settlement.case.governing, settlement.decision
    if decision is not None and governing is not None:
        yield Count(Metric.DECISIONS, (queue, pool, governing.name, decision.verdict))
    if settlement.undecided_because is UndecidedBecause.GANG and governing is not None:
        yield Count(Metric.GANG_SKIPS, (governing.name,))
    if settlement.is_failure:
        yield Count(Metric.FAILURES_BY_QUEUE, (queue, pool, *_category(settlement)))


def _category(settlement: Settlement) -> tuple[str, str]:
    failure = settlement.case.run.failure
    return failure.category, failure.subcategory


def settle_time(seconds: float) -> dict[Count, float]:
    """What one batch of settling that took so long adds."""
    return {
        Count(Metric.SETTLE_TIMES, (_bucket(seconds),)): 1,
        Count(Metric.SETTLE_SECONDS): seconds,
    }


def round_time(pool: str, seconds: float) -> dict[Count, float]:
    """What one round of a pool that took so long adds."""
    return {
        Count(Metric.ROUND_TIMES, (pool, _bucket(seconds))): 1,
        Count(Metric.ROUND_SECONDS, (pool,)): seconds,
    }


def _bucket(seconds: float) -> str:
    return next((str(bound) for bound in BUCKETS if seconds <= bound), BEYOND)
