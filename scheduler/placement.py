"""Placement: what a job needs, what a node has, and whether the one fits the other."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol, Self

from policies.quantity import format_bytes, parse_bytes, rounded_bytes


class Asking(Protocol):
    """What of a job says where it fits."""

    @property
    def cpu_request_millicores(self) -> int: ...
    @property
    def memory_request_bytes(self) -> int | None: ...
    @property
    def memory_limit_bytes(self) -> int | None: ...
    @property
    def resources(self) -> Mapping[str, int]: ...
    @property
    def node_selector(self) -> Mapping[str, str]: ...
    @property
    def avoided_nodes(self) -> Collection[str]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirements:
    """What a job asks of a node. Equal requirements fit the same nodes, so they are looked at once."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    """Other resources by name, in whole units, sorted."""
    node_selector: tuple[tuple[str, str], ...] = ()
    """Labels a node must carry, sorted."""
    avoided_nodes: tuple[str, ...] = ()
    """Values of the node id label that are ruled out, sorted."""

    @classmethod
    def of(cls, job: Asking) -> Self:
        """What a queued job reserves and where it may go."""
        return cls.from_amounts(
            cpu_millicores=job.cpu_request_millicores,
            memory_bytes=reserved_memory(request=job.memory_request_bytes, limit=job.memory_limit_bytes),
            resources=job.resources,
            node_selector=job.node_selector,
            avoided_nodes=job.avoided_nodes,
        )

    @classmethod
    def from_amounts(
        cls,
        *,
        cpu_millicores: int,
        memory_bytes: int,
        resources: Mapping[str, int],
        node_selector: Mapping[str, str],
        avoided_nodes: Iterable[str],
    ) -> Self:
        """What a job asks, from its fields in any order: equal jobs get equal requirements."""
        return cls(
            cpu_millicores=cpu_millicores,
            memory_bytes=memory_bytes,
            resources=tuple(sorted((name, amount) for name, amount in resources.items() if amount)),
            node_selector=tuple(sorted(node_selector.items())),
            avoided_nodes=tuple(sorted(set(avoided_nodes))),
        )

    @property
    def key(self) -> str:
        """The same 16 characters for equal requirements, in every process and every version of Tack."""
        shape = [
            self.cpu_millicores,
            self.memory_bytes,
            self.resources,
            self.node_selector,
            self.avoided_nodes,
        ]
        text = json.dumps(shape, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def reserved_memory(*, request: int | None, limit: int | None) -> int:
    """Bytes a job reserves: it may use up to its limit, so the limit counts wherever it is the larger."""
    return max(request or 0, limit or 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeCapacity:
    """A node with everything it has, used or not."""

    executor: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_millicores: int
    memory_bytes: int
    resources: Mapping[str, int] = field(default_factory=dict)
    schedulable: bool = True
    """False while the node takes no new runs; its capacity counts for what could fit one day."""
    closed_because: str = ""
    """A sentence, where it is known."""

    def node_id(self, label: str) -> str:
        """What avoidance knows the node by: the value of the node id label, empty where it lacks the label."""
        return self.labels.get(label, "")


class ObstacleKind(StrEnum):
    """What keeps a job from a node."""

    CLOSED = "closed"
    SELECTOR = "selector"
    AVOIDED = "avoided"
    CPU = "cpu"
    MEMORY = "memory"
    RESOURCE = "resource"


class Obstacle(NamedTuple):
    """The first thing that keeps a job from one node. A plan makes millions: hence a tuple."""

    kind: ObstacleKind
    name: str = ""
    """The label or resource it is about, or why the node is closed."""
    wanted: int = 0
    found: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """Whether a job could run on some node if nothing else ran, and if not why, in a sentence."""

    fits: bool
    reason: str = ""


def fits_somewhere(
    requirements: Iterable[Requirements], nodes: Collection[NodeCapacity], *, node_id_label: str
) -> dict[Requirements, Fit]:
    """Whether each could run on some node of an idle fleet; equal requirements are answered once.

    Closed nodes count. Where no node is known yet everything fits: it waits for one to be heard of.
    """
    if not nodes:
        return {wanted: Fit(fits=True) for wanted in set(requirements)}
    return {wanted: _fit(wanted, nodes, node_id_label) for wanted in set(requirements)}


def barred(requirements: Requirements, node: NodeCapacity, *, node_id_label: str) -> Obstacle | None:
    """What keeps the job from this node whatever it has: a label it lacks, or that it is avoided."""
    for label, value in requirements.node_selector:
        if node.labels.get(label) != value:
            return Obstacle(kind=ObstacleKind.SELECTOR, name=f"{label}={value}")
    if requirements.avoided_nodes and node.node_id(node_id_label) in requirements.avoided_nodes:
        return Obstacle(kind=ObstacleKind.AVOIDED)
    return None


def lacking(
    requirements: Requirements, *, cpu_millicores: int, memory_bytes: int, resources: Mapping[str, int]
) -> Obstacle | None:
    """The first resource of which there is less than the job needs, or None."""
    if requirements.memory_bytes > memory_bytes:
        return Obstacle(kind=ObstacleKind.MEMORY, wanted=requirements.memory_bytes, found=memory_bytes)
    if requirements.cpu_millicores > cpu_millicores:
        return Obstacle(kind=ObstacleKind.CPU, wanted=requirements.cpu_millicores, found=cpu_millicores)
    for name, amount in requirements.resources:
        if amount > (found := resources.get(name, 0)):
            return Obstacle(kind=ObstacleKind.RESOURCE, name=name, wanted=amount, found=found)
    return None


def why_nowhere(obstacles: Collection[Obstacle], *, free: bool) -> str:
    """The sentence for a job that met an obstacle on every node; `free` when it is about what is left now."""
    groups: dict[tuple[ObstacleKind, str], list[Obstacle]] = defaultdict(list)
    for obstacle in obstacles:
        groups[obstacle.kind, obstacle.name].append(obstacle)
    parts = [_part(group, free=free) for _, group in sorted(groups.items())]
    count = "The only node does not fit" if len(obstacles) == 1 else f"None of {len(obstacles)} nodes fits"
    return f"{count}: {'; '.join(parts)}."


def _fit(wanted: Requirements, nodes: Iterable[NodeCapacity], node_id_label: str) -> Fit:
    obstacles = []
    for node in nodes:
        obstacle = barred(wanted, node, node_id_label=node_id_label) or lacking(
            wanted,
            cpu_millicores=node.cpu_millicores,
            memory_bytes=node.memory_bytes,
            resources=node.resources,
        )
        if obstacle is None:
            return Fit(fits=True)
        obstacles.append(obstacle)
    return Fit(fits=False, reason=why_nowhere(obstacles, free=False))


def _part(group: Collection[Obstacle], *, free: bool) -> str:
    first = next(iter(group))
    one = len(group) == 1
    match first.kind:
        case ObstacleKind.CLOSED:
            return f"{len(group)} {'takes' if one else 'take'} no new runs{_in_brackets(first.name)}"
        case ObstacleKind.SELECTOR:
            return f"{len(group)} {'lacks' if one else 'lack'} the label {first.name}"
        case ObstacleKind.AVOIDED:
            return f"{len(group)} {'is' if one else 'are'} avoided after a failure there"
    wanted, most = _amounts(first, first.wanted, max(obstacle.found for obstacle in group))
    has = f"{len(group)} {'has' if one else 'have'} less than {wanted}"
    return f"{has}{' free' if free else ''} ({most if one else f'at most {most}'})"


def _amounts(obstacle: Obstacle, wanted: int, found: int) -> tuple[str, str]:
    match obstacle.kind:
        case ObstacleKind.MEMORY:
            return _memory(wanted, found)
        case ObstacleKind.CPU:
            return f"{wanted / 1000:g} CPU", f"{found / 1000:g} CPU"
        case _:
            return f"{wanted} {obstacle.name}", f"{found} {obstacle.name}"


def _memory(wanted: int, found: int) -> tuple[str, str]:
    """Both rounded, as everywhere; exact where rounding would make them the same."""
    near = parse_bytes(rounded_bytes(wanted)) == parse_bytes(rounded_bytes(found))
    words = format_bytes if near else rounded_bytes
    return f"{words(wanted)} memory", f"{words(found)} memory"


def _in_brackets(sentence: str) -> str:
    return f" ({sentence[:1].lower()}{sentence[1:].rstrip('.')})" if sentence else ""
