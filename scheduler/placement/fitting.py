"""Fitting: whether a node can give what a job asks, now or if nothing else ran."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from scheduler.executors.protocol import first_unhonoured
from scheduler.placement.labels import Affinity, Taint, matches, untolerated
from scheduler.placement.obstacles import Obstacle, ObstacleKind, why_nowhere
from scheduler.placement.requirements import Requirements

LONGEST_AFFINITY = 160
"""Characters of an affinity in a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeCapacity:
    """A node with everything it has, used or not."""

    executor: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cpu_millicores: int
    memory_bytes: int
    resources: Mapping[str, int] = field(default_factory=dict)
    schedulable: bool = True
    """False while the node takes no new runs; its capacity counts for what could fit one day."""
    closed_because: str = ""
    """A sentence, where it is known."""
    honours: frozenset[str] = frozenset()
    """Fields of the pod spec that its executor acts on; empty where it says nothing of fields."""

    def node_id(self, label: str) -> str:
        """What avoidance knows the node by: the value of the node id label, empty where it lacks the label."""
        return self.labels.get(label, "")


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


def allowed(requirements: Requirements, node: NodeCapacity) -> bool:
    """Whether such jobs may go to the node, had it the room; avoided nodes are not looked at."""
    return _unsuited(requirements, node) is None and _refused(requirements, node) is None


def barred(requirements: Requirements, node: NodeCapacity, *, node_id_label: str) -> Obstacle | None:
    """What keeps the job from this node whatever it has: its labels, its taints, or that it is avoided."""
    return _kept_away(requirements, node, node_id_label) or _refused(requirements, node)


def discouraged(requirements: Requirements, node: NodeCapacity) -> bool:
    """Whether the node is to be the last choice of such jobs: a taint says so that they do not tolerate."""
    return untolerated(node.taints, requirements.tolerations, barring=False) is not None


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


def obstacle_to(
    requirements: Requirements,
    node: NodeCapacity,
    *,
    node_id_label: str,
    cpu_millicores: int,
    memory_bytes: int,
    resources: Mapping[str, int],
) -> Obstacle | None:
    """What to tell of a node with so much left, or None where the job fits.

    Affinity and taints come last: told are nodes that have the room and refuse the job nevertheless, since
    that is what its owner can do something about.
    """
    return (
        _kept_away(requirements, node, node_id_label)
        or lacking(
            requirements, cpu_millicores=cpu_millicores, memory_bytes=memory_bytes, resources=resources
        )
        or _refused(requirements, node)
    )


def _fit(wanted: Requirements, nodes: Iterable[NodeCapacity], node_id_label: str) -> Fit:
    obstacles = []
    for node in nodes:
        obstacle = obstacle_to(
            wanted,
            node,
            node_id_label=node_id_label,
            cpu_millicores=node.cpu_millicores,
            memory_bytes=node.memory_bytes,
            resources=node.resources,
        )
        if obstacle is None:
            return Fit(fits=True)
        obstacles.append(obstacle)
    return Fit(fits=False, reason=why_nowhere(obstacles, free=False))


def _kept_away(requirements: Requirements, node: NodeCapacity, node_id_label: str) -> Obstacle | None:
    if obstacle := _unsuited(requirements, node):
        return obstacle
    if requirements.avoided_nodes and node.node_id(node_id_label) in requirements.avoided_nodes:
        return Obstacle(kind=ObstacleKind.AVOIDED)
    return None


def _unsuited(requirements: Requirements, node: NodeCapacity) -> Obstacle | None:
    for label, value in requirements.node_selector:
        if node.labels.get(label) != value:
            return Obstacle(kind=ObstacleKind.SELECTOR, name=f"{label}={value}")
    if requirements.needed_fields and (path := _ignored(requirements.needed_fields, node.honours)):
        return Obstacle(kind=ObstacleKind.FIELD, name=path)
    return None


@lru_cache(maxsize=1_024)
def _ignored(fields: tuple[str, ...], honours: frozenset[str]) -> str:
    """The first of the fields that is not acted on, or nothing."""
    return first_unhonoured(fields, honours) if honours else ""


def _refused(requirements: Requirements, node: NodeCapacity) -> Obstacle | None:
    if requirements.affinity and not matches(requirements.affinity, node.labels):
        return Obstacle(kind=ObstacleKind.AFFINITY, name=_words(requirements.affinity))
    if node.taints and (taint := untolerated(node.taints, requirements.tolerations)):
        return Obstacle(kind=ObstacleKind.TAINT, name=str(taint))
    return None


def _words(affinity: Affinity) -> str:
    text = " or ".join(" and ".join(map(str, term)) or "nothing" for term in affinity)
    return text if len(text) <= LONGEST_AFFINITY else f"{text[:LONGEST_AFFINITY]}…"
