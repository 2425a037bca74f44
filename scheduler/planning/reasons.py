"""Reasons: why requirements were looked at and not placed, and why a queue starts no more."""

from collections import defaultdict
from collections.abc import Mapping

from scheduler.placement import Requirements
from scheduler.planning.nodes import Nodes
from scheduler.planning.state import Gang, PoolState, QueueState

OWN_REASONS = 1_000
"""So many requirements at most are told why by their own numbers; beyond them, by those of one that asks for no more."""
OWN_LOOKS = 300_000
"""And so many nodes are looked at for it, at least for one of the requirements."""


class Unplaced:
    """Requirements that no node takes any more, each with its reason."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._reasons: dict[Requirements, str] = {}
        self._own = max(1, min(OWN_REASONS, OWN_LOOKS // max(1, len(nodes.rooms))))
        self._smallest: dict[tuple[object, ...], list[tuple[Requirements, str]]] = defaultdict(list)

    def __contains__(self, wanted: Requirements) -> bool:
        return wanted in self._reasons

    def add(self, wanted: Requirements) -> None:
        """No node takes these; only looked at once, however many jobs ask it."""
        if wanted not in self._reasons:
            self._reasons[wanted] = reason = self._nodes.why_not(wanted)
            self._smallest[_kind(wanted)].append((wanted, reason))

    def covers(self, wanted: Requirements) -> bool:
        """No node takes these either: they are among those, or there are very many and they ask for no less."""
        if wanted in self._reasons:
            return True
        if len(self._reasons) < self._own:
            return False
        for other, reason in self._smallest[_kind(wanted)]:
            if other.cpu_millicores <= wanted.cpu_millicores and other.memory_bytes <= wanted.memory_bytes:
                self._reasons[wanted] = reason
                return True
        return False

    def by_key(self) -> Mapping[str, str]:
        """Requirements key → reason."""
        return {wanted.key: reason for wanted, reason in self._reasons.items()}


def cordoned(queue: QueueState) -> str:
    """Why nothing of the queue starts."""
    return f"Queue {queue.name} is cordoned: its jobs wait until it is opened again."


def queue_rate(queue: QueueState) -> str:
    """Why nothing more of the queue starts now."""
    return f"Queue {queue.name} starts at most {queue.rate.rate:g} jobs a second; the rest wait their turn."


def pool_rate(pool: PoolState) -> str:
    """Why nothing more of any queue starts now."""
    return f"The pool starts at most {pool.rate.rate:g} jobs a second; the rest wait their turn."


def too_many_at_once(gang: Gang, jobs: int, queue: QueueState, pool: PoolState) -> str:
    """Why a gang of so many can never start; empty where it can."""
    most = {
        f"queue {queue.name}": jobs if queue.rate.ever_allows(jobs) else queue.rate.burst,
        "the pool": jobs if pool.rate.ever_allows(jobs) else pool.rate.burst,
        "a round": pool.leases_per_round,
    }
    who = min(most, key=lambda name: most[name])
    if most[who] >= jobs:
        return ""
    return f"Gang {gang.id} starts with all of its {jobs} jobs at once, and {who} starts at most {most[who]} at once."


def _kind(wanted: Requirements) -> tuple[object, ...]:
    return (
        wanted.resources, wanted.node_selector, wanted.affinity, wanted.tolerations, wanted.avoided_nodes,
        wanted.needed_fields,
    )  # fmt: skip
