"""Rooms: what is left of each node while a plan is made."""

from scheduler.placement import NodeCapacity, Obstacle, ObstacleKind, Requirements, obstacle_to
from scheduler.planning.state import NodeState, Use


def as_requirements(use: Use) -> Requirements:
    """What is held, as if it were asked for."""
    return Requirements(
        cpu_millicores=use.cpu_millicores,
        memory_bytes=use.memory_bytes,
        resources=tuple(sorted(use.resources.items())),
    )


class Room:
    """What is left of a node. It may be less than nothing where the node has shrunk below what its runs hold."""

    __slots__ = ("_watchers", "cpu_millicores", "memory_bytes", "node", "node_id", "number", "resources")

    def __init__(self, state: NodeState, *, number: int, node_id: str) -> None:
        node, used = state.capacity, state.used
        self.node: NodeCapacity = node
        self.number = number
        """Tells equally full rooms apart: they are filled in the order of their names."""
        self.node_id = node_id
        self.cpu_millicores = node.cpu_millicores - used.cpu_millicores
        self.memory_bytes = node.memory_bytes - used.memory_bytes
        self.resources = {
            name: amount - used.resources.get(name, 0) for name, amount in node.resources.items()
        }
        self._watchers: list[set[Room]] = []

    def watch(self, changed: "set[Room]") -> None:
        """From now on the room puts itself into the set whenever what is left of it changes."""
        self._watchers.append(changed)

    def fits(self, wanted: Requirements) -> bool:
        """So much is left, and the node is not avoided. Who asks for nothing of a resource needs none left."""
        cpu, memory = wanted.cpu_millicores, wanted.memory_bytes
        if (cpu > self.cpu_millicores and cpu) or (memory > self.memory_bytes and memory):
            return False
        for name, amount in wanted.resources:
            if amount > self.resources.get(name, 0):
                return False
        return not wanted.avoided_nodes or self.node_id not in wanted.avoided_nodes

    def missing(self, wanted: Requirements) -> dict[str, int]:
        """How much more would have to be left, by resource."""
        found = {}
        if 0 < wanted.cpu_millicores > self.cpu_millicores:
            found["cpu"] = wanted.cpu_millicores - self.cpu_millicores
        if 0 < wanted.memory_bytes > self.memory_bytes:
            found["memory"] = wanted.memory_bytes - self.memory_bytes
        for name, amount in wanted.resources:
            if amount > (left := self.resources.get(name, 0)):
                found[name] = amount - left
        return found

    def lack(self, wanted: Requirements) -> float:
        """How much more of its CPU and memory would have to be left, 1 being all of either."""
        cpu = max(0, wanted.cpu_millicores - self.cpu_millicores) / (self.node.cpu_millicores or 1)
        memory = max(0, wanted.memory_bytes - self.memory_bytes) / (self.node.memory_bytes or 1)
        return cpu + memory

    def take(self, amounts: Requirements) -> None:
        """So much less is left."""
        self._change(amounts, -1)

    def give(self, amounts: Requirements) -> None:
        """So much more is left."""
        self._change(amounts, 1)

    def emptiness(self) -> float:
        """0 of a full node, 2 of an empty one."""
        node = self.node
        return self.cpu_millicores / (node.cpu_millicores or 1) + self.memory_bytes / (node.memory_bytes or 1)

    def obstacle_to(self, wanted: Requirements, *, node_id_label: str) -> Obstacle | None:
        """What keeps such a job from this node now; None where it fits."""
        if not self.node.schedulable:
            return Obstacle(kind=ObstacleKind.CLOSED, name=self.node.closed_because)
        return obstacle_to(
            wanted,
            self.node,
            node_id_label=node_id_label,
            cpu_millicores=max(0, self.cpu_millicores),
            memory_bytes=max(0, self.memory_bytes),
            resources=self.resources,
        )

    def _change(self, amounts: Requirements, sign: int) -> None:
        self.cpu_millicores += sign * amounts.cpu_millicores
        self.memory_bytes += sign * amounts.memory_bytes
        for name, amount in amounts.resources:
            self.resources[name] = self.resources.get(name, 0) + sign * amount
        for changed in self._watchers:
            changed.add(self)
