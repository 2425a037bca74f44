"""What a round plans with: the nodes, queues and runs of a pool, and the rules it goes by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from scheduler.placement import NodeCapacity, Requirements
from scheduler.planning.buckets import TokenBucket

LEASES_PER_ROUND = 5_000
"""What one transaction writes at most; a plan that stops here says that there is more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """What runs hold of a node, or of a pool."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeState:
    """A node and what its active runs hold of it."""

    capacity: NodeCapacity
    used: Use = field(default_factory=Use)


@dataclass(frozen=True, kw_only=True, slots=True)
class PriorityClass:
    """How urgent jobs are."""

    name: str
    priority: int = 0
    """Larger goes first, and may take the place of smaller."""
    preemptible: bool = False
    """Whether its runs may be ended for the sake of others' fair share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gang:
    """Jobs of one queue that start together or not at all. Every member carries the same."""

    id: str
    cardinality: int
    """How many members there are to be."""
    uniformity_label: str = ""
    """All members go to nodes with one value of this label; empty for any nodes."""
    placed: int = 0
    """Members that have started in an earlier round and are not lost: active ones, and those that succeeded."""
    uniformity_value: str = ""
    """The value of the label where they are; empty when none has started."""


class QueuedJob(NamedTuple):
    """A job that waits. A lease is for this version of it. A hundred thousand may wait: hence a tuple."""

    id: str
    version: int
    priority: int
    """Smaller goes first."""
    submitted_at: datetime
    requirements: Requirements
    priority_class: str = ""
    gang: Gang | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningJob:
    """An active run that may have to give way. What it holds is in the use of its node and queue as well."""

    run_id: str
    job_id: str
    queue: str
    executor: str
    node: str
    priority_class: str = ""
    used: Use
    leased_at: datetime
    gang_id: str = ""
    """Members of a gang give way together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueState:
    """A queue, its waiting jobs within the look-back limit, and what its active runs hold of the pool.

    A cordoned queue may come without its jobs; members of a gang come all or not at all.
    """

    name: str
    priority_factor: float = 1.0
    cordoned: bool = False
    used: Use = field(default_factory=Use)
    used_by_class: Mapping[str, Use] = field(default_factory=dict)
    """What the active runs of each priority class hold of it; needed of classes with a limit."""
    jobs: Sequence[QueuedJob] = ()
    rate: TokenBucket
    looked_back: int = 0
    """The look-back limit, where jobs wait beyond it; 0 where these are all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolState:
    """Everything a plan depends on; the rates are as they stand now."""

    nodes: Sequence[NodeState]
    queues: Sequence[QueueState]
    running: Sequence[RunningJob] = ()
    """Active runs that a waiting job might take the place of; those of other classes need not be there."""
    rate: TokenBucket
    node_id_label: str
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    """By the name that jobs carry. A name that is not there has the priority 0 and is not preemptible."""
    fair_share_resources: tuple[str, ...] = ("cpu", "memory")
    """A queue's share is its largest of these."""
    protected_fraction: float = 1.0
    """A queue that holds no more than this part of its share loses nothing to other queues' shares."""
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Priority class → resource → the part of the pool's, from 0 to 1, that one queue's jobs of it may hold."""
    leases_per_round: int = LEASES_PER_ROUND

    def priority_class(self, name: str) -> PriorityClass:
        """The class of that name."""
        return self.priority_classes.get(name) or PriorityClass(name=name)
