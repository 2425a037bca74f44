"""Trials: jobs that start together are placed one by one, and taken back when one of them finds no place."""

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.planning.fairness import Measure
from scheduler.planning.limits import ClassLimits
from scheduler.planning.lines import Line
from scheduler.planning.nodes import Domain, Nodes
from scheduler.planning.occupants import Eviction, Occupant, Occupants
from scheduler.planning.preemption import Preemption
from scheduler.planning.rooms import Room
from scheduler.planning.rules import Taker
from scheduler.planning.state import PriorityClass, QueuedJob


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """What a round moves on."""

    nodes: Nodes
    measure: Measure
    occupants: Occupants
    preemption: Preemption
    limits: ClassLimits
    class_of: Callable[[str], PriorityClass]


class Trial:
    """Jobs of one queue on their nodes, until they are kept or taken back."""

    def __init__(self, board: Board, line: Line) -> None:
        self.placed: list[tuple[QueuedJob, Room]] = []
        self._evicted: list[Occupant] = []
        self._has_asked = False
        self._board = board
        self._line = line

    def place(self, job: QueuedJob, *, domain: Domain | None = None) -> bool:
        """Take a place for the job as things are. False, and nothing taken, where there is none."""
        return self._take(job, self._board.nodes.find(job.requirements, domain))

    def make_place(self, job: QueuedJob, *, domain: Domain | None = None) -> bool:
        """The same where something may give way to it."""
        preemption = self._board.preemption
        return preemption.is_possible and self._take(job, self._make_way(job, domain))

    def undo(self) -> None:
        """Leave everything as it was."""
        for job, room in reversed(self.placed):
            room.give(job.requirements)
            self._line.give(job.priority_class, self._board.measure.of(job.requirements), started=1)
        for occupant in reversed(self._evicted):
            self._board.occupants.restore(occupant)
        if self._has_asked:
            self._board.preemption.forget()
        self.placed, self._evicted = [], []

    def keep(self) -> set[Line]:
        """It stays so. Returns the queues that something was taken from.

        What need not give way after all comes back, the dearest first: then nothing more could be spared.
        """
        rooms = {room for occupant in self._evicted for room in occupant.rooms}
        for occupant in self._board.occupants.evicted_from(rooms):
            if occupant.has_room() and not self._is_over_limit(occupant):
                self._board.occupants.restore(occupant)
        return {occupant.line for occupant in self._evicted}

    def _is_over_limit(self, occupant: Occupant) -> bool:
        """Jobs of its queue and class have started in its place, and both are more than they may hold."""
        line, name = occupant.line, occupant.priority_class.name
        return line.starts(name) and bool(self._board.limits.exceeded(line, name, [occupant.amounts]))

    def _take(self, job: QueuedJob, room: Room | None) -> bool:
        if room is None:
            return False
        room.take(job.requirements)
        self._line.take(job.priority_class, self._board.measure.of(job.requirements))
        self.placed.append((job, room))
        return True

    def _make_way(self, job: QueuedJob, domain: Domain | None) -> Room | None:
        self._has_asked = True
        board = self._board
        taker = Taker(
            job=job, line=self._line, priority_class=board.class_of(job.priority_class), domain=domain
        )
        if (way := board.preemption.find(taker)) is None:
            return None
        for occupant in way.victims:
            board.occupants.evict(occupant, Eviction(for_job=job.id, reason=way.reason))
            self._evicted.append(occupant)
        return way.room
