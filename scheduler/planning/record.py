"""The record of a round: the leases it made, what gives way for them, and why others wait."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from scheduler.planning.occupants import Eviction, Occupant
from scheduler.planning.plans import PlannedLease, PlannedPreemption
from scheduler.planning.state import QueueState


class Reasons(NamedTuple):
    """Why jobs wait, apart from what their requirements say."""

    gangs: dict[str, dict[str, str]]
    limited: dict[str, dict[str, str]]
    held: dict[str, str]

    @classmethod
    def none(cls) -> "Reasons":
        """So far nothing is known."""
        return cls(gangs=defaultdict(dict), limited=defaultdict(dict), held={})

    def add_cut_off(self, queues: Iterable[QueueState]) -> None:
        """Say so where only the front of a queue was looked at, unless there is more to say of the queue."""
        for queue in queues:
            if queue.looked_back:
                self.held.setdefault(queue.name, _cut_off(queue))


def kept(leases: Iterable[PlannedLease], evicted: Iterable[Occupant]) -> Sequence[PlannedLease]:
    """The leases without those whose place was taken again in the same round."""
    taken = {lease.job.id for occupant in evicted for lease in occupant.leases}
    return [lease for lease in leases if lease.job.id not in taken]


def preemptions(evicted: Sequence[Occupant]) -> Iterator[PlannedPreemption]:
    """The runs that give way, each to a job that is leased in the end."""
    taken_again = {
        lease.job.id: occupant.evicted
        for occupant in evicted
        for lease in occupant.leases
        if occupant.evicted
    }
    for occupant in evicted:
        if why := occupant.evicted:
            while why.for_job in taken_again:
                why = taken_again[why.for_job]
            yield from _of_runs(occupant, why)


def _of_runs(occupant: Occupant, why: Eviction) -> Iterator[PlannedPreemption]:
    for run in occupant.runs:
        yield PlannedPreemption(
            run_id=run.run_id,
            job_id=run.job_id,
            queue=run.queue,
            executor=run.executor,
            node=run.node,
            reason=why.reason,
            for_job=why.for_job,
        )


def _cut_off(queue: QueueState) -> str:
    return f"A round looks at the first {queue.looked_back:,} jobs of queue {queue.name}; the rest wait their turn."
