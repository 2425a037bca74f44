"""The nodes of a pool while a plan is made: which of them takes a job now, and why none does."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler.placement import Requirements, allowed, discouraged, why_nowhere
from scheduler.planning.rooms import Room
from scheduler.planning.shelves import Shelf
from scheduler.planning.state import NodeState


class Domain(NamedTuple):
    """The nodes that have one value of a label."""

    label: str
    value: str


type Kind = tuple[object, ...]
"""What of requirements says which nodes could take such a job, had they the room."""


class Nodes:
    """A room for each node. Requirements that may go to the same nodes share a shelf of them."""

    def __init__(self, states: Sequence[NodeState], *, node_id_label: str) -> None:
        self._node_id_label = node_id_label
        in_order = sorted(states, key=lambda state: (state.capacity.executor, state.capacity.name))
        self.rooms = [
            Room(state, number=number, node_id=state.capacity.node_id(node_id_label))
            for number, state in enumerate(in_order)
        ]
        self._by_name = {(room.node.executor, room.node.name): room for room in self.rooms}
        self._domains: dict[str, dict[str, list[Room]]] = {}
        self._shelves: dict[Kind, Shelf] = {}
        self._known: dict[tuple[Requirements, Domain | None], Shelf] = {}

    def room(self, executor: str, node: str) -> Room | None:
        """The room of that node; None where it is not of the pool any more."""
        return self._by_name.get((executor, node))

    def find(self, wanted: Requirements, domain: Domain | None = None) -> Room | None:
        """The fullest node that such a job fits onto now."""
        return self._shelf(wanted, domain).find(wanted)

    def open_to(self, wanted: Requirements, domain: Domain | None = None) -> list[Room]:
        """The nodes that could take such a job, had they the room."""
        rooms = self._shelf(wanted, domain).rooms
        return [room for room in rooms if room.node_id not in wanted.avoided_nodes]

    def domains(self, label: str) -> Mapping[str, Sequence[Room]]:
        """The rooms by their value of a label; those without it are left out."""
        if label not in self._domains:
            found: dict[str, list[Room]] = defaultdict(list)
            for room in self.rooms:
                if (value := room.node.labels.get(label)) is not None:
                    found[value].append(room)
            self._domains[label] = dict(found)
        return self._domains[label]

    def why_not(self, wanted: Requirements) -> str:
        """Why no node takes such a job now, in a sentence."""
        if not self.rooms:
            return "No node has been heard of. The job waits until an executor reports one."
        obstacles = (room.obstacle_to(wanted, node_id_label=self._node_id_label) for room in self.rooms)
        return why_nowhere([obstacle for obstacle in obstacles if obstacle], free=True)

    def _shelf(self, wanted: Requirements, domain: Domain | None) -> Shelf:
        shelf = self._known.get((wanted, domain))
        if shelf is None:
            kind = _kind(wanted, domain)
            if (shelf := self._shelves.get(kind)) is None:
                shelf = self._shelves[kind] = self._new_shelf(wanted, domain)
            self._known[wanted, domain] = shelf
        return shelf

    def _new_shelf(self, wanted: Requirements, domain: Domain | None) -> Shelf:
        among = self.domains(domain.label).get(domain.value, []) if domain else self.rooms
        rooms = [
            room
            for room in among
            if room.node.schedulable and _has(room, wanted) and allowed(wanted, room.node)
        ]
        return Shelf(rooms, last_choice=[room for room in rooms if discouraged(wanted, room.node)])


def _has(room: Room, wanted: Requirements) -> bool:
    return all(name in room.node.resources for name, _ in wanted.resources)


def _kind(wanted: Requirements, domain: Domain | None) -> Kind:
    names = tuple(name for name, _ in wanted.resources)
    return (
        wanted.node_selector, wanted.affinity, wanted.tolerations, wanted.needed_fields, names, domain,
    )  # fmt: skip
