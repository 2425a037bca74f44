"""Gangs: all members that wait start in one round, or none does."""

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

from scheduler.planning.lines import Line, Together
from scheduler.planning.nodes import Domain
from scheduler.planning.rooms import Room
from scheduler.planning.state import Gang, QueuedJob
from scheduler.planning.trials import Board, Trial

PREEMPTING_DOMAINS = 8
"""In so many domains a gang looks for something that might give way, those first where most of it fits already."""

type Shape = tuple[object, ...]
"""Gangs of one shape fit alike: where one found no room another finds none."""


class Shortfall(NamedTuple):
    """How far a gang got."""

    placed: int
    domain: Domain | None
    why: str
    """Why there was no place for the next member, in a sentence, where that was asked."""


class Gangs:
    """Places gangs, those of a shape that does not fit once in a round."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._hopeless: dict[Shape, Shortfall] = {}

    def place(self, line: Line, jobs: Together, gang: Gang) -> Trial | str:
        """The waiting members on their nodes, or why they do not start."""
        if (there := len(jobs) + gang.placed) < gang.cardinality:
            are = "is" if there == 1 else "are"
            return f"Gang {gang.id} waits for all of its {gang.cardinality} jobs: {there} {are} there."
        shape = self._shape(line, jobs, gang)
        if (short := self._hopeless.get(shape)) is None:
            found = self._search(line, self._large_first(jobs), self._domains(jobs, gang))
            if isinstance(found, Trial):
                return found
            short = self._hopeless[shape] = found
        return _why_not(gang, len(jobs), short)

    def _search(
        self, line: Line, jobs: Sequence[QueuedJob], domains: Iterable[Domain | None]
    ) -> Trial | Shortfall:
        """In each domain as it is; then, in the best of them, with what may give way."""
        tried = []
        for domain in domains:
            found = self._try(line, jobs, domain, preempting=False)
            if isinstance(found, Trial):
                return found
            tried.append(found)
        for short in nlargest(PREEMPTING_DOMAINS, tried, key=_placed):
            found = self._try(line, jobs, short.domain, preempting=True)
            if isinstance(found, Trial):
                return found
        return max(tried, key=_placed, default=Shortfall(placed=0, domain=None, why=""))

    def _try(
        self, line: Line, jobs: Sequence[QueuedJob], domain: Domain | None, *, preempting: bool
    ) -> Trial | Shortfall:
        trial = Trial(self._board, line)
        for job in jobs:
            if not (trial.place(job, domain=domain) or (preempting and trial.make_place(job, domain=domain))):
                why = "" if preempting or domain else self._board.nodes.why_not(job.requirements)
                short = Shortfall(placed=len(trial.placed), domain=domain, why=why)
                trial.undo()
                return short
        return trial

    def _large_first(self, jobs: Together) -> Sequence[QueuedJob]:
        measure = self._board.measure
        return sorted(jobs, key=lambda job: -measure.dominant_share(measure.of(job.requirements)))

    def _domains(self, jobs: Together, gang: Gang) -> list[Domain | None]:
        """Where the members may be together, the fullest first; those too small for them are left out."""
        label = gang.uniformity_label
        if not label:
            return [None]
        if gang.uniformity_value:
            return [Domain(label, gang.uniformity_value)]
        cpu = sum(job.requirements.cpu_millicores for job in jobs)
        memory = sum(job.requirements.memory_bytes for job in jobs)
        large = {
            value: rooms
            for value, rooms in self._board.nodes.domains(label).items()
            if _have_in_all(rooms, cpu_millicores=cpu, memory_bytes=memory)
        }
        in_order = sorted(large, key=lambda value: (sum(map(Room.emptiness, large[value])), value))
        return [Domain(label, value) for value in in_order]

    def _shape(self, line: Line, jobs: Together, gang: Gang) -> Shape:
        asked = frozenset(Counter((job.priority_class, job.requirements) for job in jobs).items())
        return (line.name, asked, gang.uniformity_label, gang.uniformity_value)


def _have_in_all(rooms: Iterable[Room], *, cpu_millicores: int, memory_bytes: int) -> bool:
    """Whether the nodes that take runs are large enough together, with nothing on them."""
    nodes = [room.node for room in rooms if room.node.schedulable]
    return (
        sum(node.cpu_millicores for node in nodes) >= cpu_millicores
        and sum(node.memory_bytes for node in nodes) >= memory_bytes
    )


def _placed(short: Shortfall) -> int:
    return short.placed


def _why_not(gang: Gang, waiting: int, short: Shortfall) -> str:
    start = f"Gang {gang.id} starts with all of its {waiting} waiting jobs at once"
    if gang.uniformity_label:
        start = f"{start}, on nodes with one value of the label {gang.uniformity_label}"
    if short.domain:
        return f"{start}: {short.placed} would fit now where it is {short.domain.value}."
    if gang.uniformity_label:
        return f"{start}: nowhere is there enough for them, even with nothing else at work."
    return f"{start}: {short.placed} would fit now. {short.why}"
