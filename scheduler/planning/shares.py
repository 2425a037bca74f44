"""Shares: the part of the pool that is each queue's, by what its jobs hold and wait for."""

from collections import Counter
from collections.abc import Iterable

from scheduler.planning.fairness import Claim, Measure, fair_shares, total_of
from scheduler.planning.rooms import as_requirements
from scheduler.planning.state import QueueState


def shares_of(queues: Iterable[QueueState], measure: Measure) -> dict[str, float]:
    """Queue → its fair share, from 0 to 1. One that nothing runs or waits in has none."""
    return fair_shares({queue.name: _claim(queue, measure) for queue in queues})


def _claim(queue: QueueState, measure: Measure) -> Claim:
    waiting = Counter(job.requirements for job in ([] if queue.cordoned else queue.jobs))
    asked = [tuple(amount * count for amount in measure.of(wanted)) for wanted, count in waiting.items()]
    demand = total_of([measure.of(as_requirements(queue.used)), *asked], measure.nothing)
    return Claim(weight=1 / queue.priority_factor, demand=measure.dominant_share(demand))
