"""What of a plan can still be done when some of what it was made from has changed before it is written."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from scheduler.planning.plans import Plan, PlannedLease, PlannedPreemption

type NodeName = tuple[str, str]
"""Executor and node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """How things stand now for what a plan is about."""

    waiting: Collection[str]
    """Jobs to be leased that wait as they did."""
    open_nodes: Collection[NodeName]
    """Nodes that take new runs."""
    active: Collection[str]
    """Runs to give way that still hold their room."""
    may_give_way: Collection[str]
    """Those of them that can be ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """The part of a plan that holds."""

    leases: Sequence[PlannedLease]
    preemptions: Sequence[PlannedPreemption]
    """Of runs that still hold the room which a lease here takes."""


def what_holds(planned: Plan, changes: Changes) -> Holding:
    """The leases that are still possible and the preemptions they need: no gang in part, no node overcommitted.

    A run that ended meanwhile made room by itself. One that keeps its room, because the job it was to make room
    for does not come or because it cannot be ended, takes the leases of its node with it: they may have counted
    on that room.
    """
    leases = [lease for lease in planned.leases if _is_possible(lease, changes)]
    while True:
        leases = _whole_gangs(leases, planned.leases)
        leased = {lease.job.id for lease in leases}
        kept = {
            (each.executor, each.node)
            for each in planned.preemptions
            if each.run_id in changes.active
            and (each.run_id not in changes.may_give_way or each.for_job not in leased)
        }
        remaining = [lease for lease in leases if _node_of(lease) not in kept]
        if len(remaining) == len(leases):
            return Holding(leases=leases, preemptions=_needed(planned.preemptions, leased, changes))
        leases = remaining


def _is_possible(lease: PlannedLease, changes: Changes) -> bool:
    return lease.job.id in changes.waiting and _node_of(lease) in changes.open_nodes


def _node_of(lease: PlannedLease) -> NodeName:
    return lease.node.executor, lease.node.name


def _whole_gangs(left: Sequence[PlannedLease], planned: Iterable[PlannedLease]) -> list[PlannedLease]:
    """Without the members of gangs of which one is gone."""
    there = {lease.job.id for lease in left}
    members: dict[tuple[str, str], list[str]] = defaultdict(list)
    for lease in planned:
        if lease.job.gang is not None:
            members[lease.queue, lease.job.gang.id].append(lease.job.id)
    broken = {gang for gang, jobs in members.items() if not there.issuperset(jobs)}
    return [
        lease for lease in left if lease.job.gang is None or (lease.queue, lease.job.gang.id) not in broken
    ]


def _needed(
    preemptions: Iterable[PlannedPreemption], leased: Collection[str], changes: Changes
) -> list[PlannedPreemption]:
    return [each for each in preemptions if each.run_id in changes.active and each.for_job in leased]
