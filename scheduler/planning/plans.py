"""What a round is about to do, and why it does no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.placement import NodeCapacity
from scheduler.planning.buckets import TokenBucket
from scheduler.planning.state import QueuedJob

type Sentence = str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedLease:
    """A job and the node it goes to."""

    queue: str
    job: QueuedJob
    node: NodeCapacity


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedPreemption:
    """A run that gives way to a job that is leased by the same plan."""

    run_id: str
    job_id: str
    queue: str
    executor: str
    node: str
    reason: str
    """A sentence for its owner."""
    for_job: str
    """The job that takes its place; of a gang, the member that did not fit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a round is about to do, and why it does no more."""

    leases: Sequence[PlannedLease]
    preemptions: Sequence[PlannedPreemption] = ()
    unplaced: Mapping[str, Sentence]
    """Requirements key → why no node took such a job."""
    gangs: Mapping[str, Mapping[str, Sentence]] = field(default_factory=dict)
    """Queue → gang → why it did not start."""
    limited: Mapping[str, Mapping[str, Sentence]] = field(default_factory=dict)
    """Queue → priority class → the limit on what the queue's jobs of the class may hold, where one was met."""
    held: Mapping[str, Sentence]
    """Queue → why none or no more of its jobs were looked at."""
    rate: TokenBucket
    queue_rates: Mapping[str, TokenBucket]
    more: bool
    """Another round would place more at once: this one stopped at so many leases as one transaction writes."""

    def why_waiting(self, *, queue: str, priority_class: str, gang_id: str, key: str) -> Sentence:
        """Why such a job was not placed; empty when the plan says nothing of it."""
        return (
            (self.gangs.get(queue, {}).get(gang_id, "") if gang_id else self.unplaced.get(key, ""))
            or self.limited.get(queue, {}).get(priority_class, "")
            or self.held.get(queue, "")
        )
