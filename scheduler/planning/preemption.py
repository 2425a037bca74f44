"""Preemption: the node on which a job that fits nowhere would fit, once some of what is there has left."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.placement import Requirements
from scheduler.planning.lines import Line
from scheduler.planning.nodes import Domain, Nodes
from scheduler.planning.occupants import Occupant, Occupants
from scheduler.planning.rooms import Room
from scheduler.planning.rules import ByUrgency, Rule, Taker, ToFairShare
from scheduler.planning.victims import held_on, victims_on


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """What leaves a node so that a job fits there."""

    room: Room
    victims: Sequence[Occupant]
    reason: str
    """For the owners of what leaves."""


class Reach(NamedTuple):
    """How much would be left of a node if all left that may."""

    cpu_millicores: int
    memory_bytes: int
    room: Room


type Attempt = tuple[str, str, Requirements, Domain | None]
"""Queue, priority class, and what is asked where."""


class Preemption:
    """Finds ways. Where none was found for a job none is looked for again in the same round: rooms only fill up."""

    def __init__(
        self,
        nodes: Nodes,
        occupants: Occupants,
        *,
        shares: Callable[[], Mapping[str, float]],
        protected: float,
    ) -> None:
        self._nodes = nodes
        self._occupants = occupants
        self._shares = shares
        self._protected = protected
        self._urgencies: set[int] = set()
        self._reaches: dict[tuple[str, int], list[Reach]] = {}
        self._candidates: dict[tuple[object, ...], list[Room]] = {}
        self._hopeless: set[Attempt] = set()

    def note(self, occupant: Occupant) -> None:
        """There is something that may have to give way."""
        self._occupants.add(occupant)
        if occupant.urgency not in self._urgencies:
            self._urgencies.add(occupant.urgency)
            self.forget()

    @property
    def is_possible(self) -> bool:
        """Anything may have to give way at all."""
        return bool(self._urgencies)

    def forget(self) -> None:
        """What was taken on trial has been given back: rooms may do that did not."""
        self._reaches.clear()
        self._candidates.clear()
        self._hopeless.clear()

    def find(self, taker: Taker) -> Way | None:
        """A way for the job; None where there is none."""
        attempt = (taker.line.name, taker.priority_class.name, taker.wanted, taker.domain)
        if attempt in self._hopeless:
            return None
        way = self._by_urgency(taker) or self._to_fair_share(taker)
        if way is None:
            self._hopeless.add(attempt)
        return way

    def _by_urgency(self, taker: Taker) -> Way | None:
        """From classes as low as will do."""
        for urgency in sorted(each for each in self._urgencies if each < taker.urgency):
            if way := self._search(taker, ByUrgency(taker, most=urgency)):
                return way
        return None

    def _to_fair_share(self, taker: Taker) -> Way | None:
        if taker.line.share >= self._share(taker.line):
            return None
        giving = [line for line in self._occupants.lines if self._gives(line, taker.line)]
        return (
            self._search(taker, ToFairShare(taker, giving, self._share, self._protected)) if giving else None
        )

    def _gives(self, line: Line, taker: Line) -> bool:
        """Whether it would give up the smallest of its runs; if not that, then none."""
        if line.share <= self._protected * self._share(line):
            return False
        return line.standing_without(self._occupants.least_of(line)) > taker.standing

    def _share(self, line: Line) -> float:
        return self._shares().get(line.name, 0.0)

    def _search(self, taker: Taker, rule: Rule) -> Way | None:
        rooms = self._rooms(taker, rule)
        while rooms:
            room = rooms[-1]
            leaving = sorted(filter(rule.may_leave, self._occupants.on(room)), key=rule.order)
            victims = victims_on(room, taker.wanted, leaving, allows=rule.allowance())
            if victims is not None:
                return Way(room=room, victims=victims, reason=rule.reason)
            rooms.pop()
        return None

    def _rooms(self, taker: Taker, rule: Rule) -> list[Room]:
        """Nodes where such a job might fit if all left that may, the one that lacks least at the end."""
        wanted = taker.wanted
        key = (*rule.key, wanted, taker.domain)
        if (found := self._candidates.get(key)) is None:
            open_to = set(self._nodes.open_to(wanted, taker.domain))
            rooms = [
                reach.room
                for reach in self._reach(rule)
                if wanted.cpu_millicores <= reach.cpu_millicores
                and wanted.memory_bytes <= reach.memory_bytes
                and reach.room in open_to
            ]
            rooms.sort(key=lambda room: (room.lack(wanted), room.number), reverse=True)
            found = self._candidates[key] = rooms
        return found

    def _reach(self, rule: Rule) -> list[Reach]:
        """Of each node. It only becomes less, so it is worked out once."""
        if (found := self._reaches.get(rule.key)) is None:
            found = self._reaches[rule.key] = [self._reach_of(room, rule) for room in self._nodes.rooms]
        return found

    def _reach_of(self, room: Room, rule: Rule) -> Reach:
        parts = [held_on(room, each) for each in self._occupants.on(room) if rule.may_leave(each)]
        return Reach(
            cpu_millicores=max(0, room.cpu_millicores + sum(part["cpu"] for part in parts)),
            memory_bytes=max(0, room.memory_bytes + sum(part["memory"] for part in parts)),
            room=room,
        )
