"""Planning: which queued job starts on which node next, as a pure function of the state of a pool."""

from scheduler.planning.buckets import TokenBucket
from scheduler.planning.plans import Plan, PlannedLease, PlannedPreemption
from scheduler.planning.round import plan
from scheduler.planning.state import (
    LEASES_PER_ROUND,
    Gang,
    NodeState,
    PoolState,
    PriorityClass,
    QueuedJob,
    QueueState,
    RunningJob,
    Use,
)

__all__ = [
    "LEASES_PER_ROUND",
    "Gang",
    "NodeState",
    "Plan",
    "PlannedLease",
    "PlannedPreemption",
    "PoolState",
    "PriorityClass",
    "QueueState",
    "QueuedJob",
    "RunningJob",
    "TokenBucket",
    "Use",
    "plan",
]
