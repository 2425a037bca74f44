"""Occupants: what holds room on nodes and may have to give way, runs and leases that are only planned alike."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.placement import Requirements
from scheduler.planning.fairness import Amounts, Measure, total_of
from scheduler.planning.lines import Line
from scheduler.planning.nodes import Nodes
from scheduler.planning.plans import PlannedLease
from scheduler.planning.rooms import Room, as_requirements
from scheduler.planning.state import PoolState, PriorityClass, QueuedJob, RunningJob


class Part(NamedTuple):
    """What is held of one node."""

    room: Room
    held: Requirements


@dataclass(frozen=True, kw_only=True, slots=True)
class Eviction:
    """Why something gives way."""

    for_job: str
    reason: str


@dataclass(kw_only=True, slots=True, eq=False)
class Occupant:
    """A run, a planned lease, or those of all members of a gang, which give way together."""

    line: Line
    """Of its queue."""
    priority_class: PriorityClass
    parts: Sequence[Part]
    amounts: Amounts
    """All of it, of the resources that are measured."""
    runs: Sequence[RunningJob] = ()
    leases: Sequence[PlannedLease] = ()
    since: float = float("inf")
    """When its latest run was leased; what is only planned is the newest of all."""
    evicted: Eviction | None = field(default=None)

    @property
    def rooms(self) -> set[Room]:
        """Where it is."""
        return {part.room for part in self.parts}

    @property
    def urgency(self) -> int:
        """Of its priority class."""
        return self.priority_class.priority

    @property
    def cheapness(self) -> tuple[int, float, str]:
        """Sorts what gives way first: of a lower class, then the later, which loses less work."""
        name = self.runs[0].run_id if self.runs else ""
        return (self.urgency, -self.since, name)

    def leave(self) -> None:
        """Give back the room."""
        for room, held in self.parts:
            room.give(held)
        self.line.give(self.priority_class.name, self.amounts, started=len(self.leases))

    def come_back(self) -> None:
        """Take the room again."""
        for room, held in self.parts:
            room.take(held)
        self.line.take(self.priority_class.name, self.amounts, started=len(self.leases))

    def has_room(self) -> bool:
        """What it held is free: it could come back."""
        asked: dict[Room, list[Requirements]] = defaultdict(list)
        for room, held in self.parts:
            asked[room].append(held)
        return all(room.fits(_together(held)) for room, held in asked.items())


class Occupants:
    """By room, what may have to give way there, and what does."""

    def __init__(self) -> None:
        self._staying: dict[Room, list[Occupant]] = defaultdict(list)
        self._evicted: dict[Room, list[Occupant]] = defaultdict(list)
        self._least: dict[Line, Amounts] = {}

    def add(self, occupant: Occupant) -> None:
        """From now on it may have to give way."""
        for room in occupant.rooms:
            self._staying[room].append(occupant)
        least = self._least.get(occupant.line, occupant.amounts)
        self._least[occupant.line] = tuple(map(min, least, occupant.amounts))

    @property
    def lines(self) -> Iterable[Line]:
        """The queues of all that may have to give way."""
        return self._least.keys()

    def least_of(self, line: Line) -> Amounts:
        """Of each resource the least that anything of the queue holds."""
        return self._least[line]

    def on(self, room: Room) -> Sequence[Occupant]:
        """What is on a node and stays so far."""
        return self._staying.get(room, ())

    def evict(self, occupant: Occupant, why: Eviction) -> None:
        """It gives way."""
        occupant.evicted = why
        occupant.leave()
        self._move(occupant, self._staying, self._evicted)

    def restore(self, occupant: Occupant) -> None:
        """It need not give way."""
        occupant.evicted = None
        occupant.come_back()
        self._move(occupant, self._evicted, self._staying)

    def evicted_from(self, rooms: Iterable[Room]) -> list[Occupant]:
        """What gives way on these nodes, the dearest first."""
        if not self._evicted:
            return []
        found = {occupant for room in rooms for occupant in self._evicted.get(room, ())}
        return sorted(found, key=_cheapness, reverse=True)

    @property
    def evicted(self) -> list[Occupant]:
        """All that gives way."""
        return self.evicted_from(list(self._evicted))

    @staticmethod
    def _move(
        occupant: Occupant, source: dict[Room, list[Occupant]], target: dict[Room, list[Occupant]]
    ) -> None:
        for room in occupant.rooms:
            source[room].remove(occupant)
            target[room].append(occupant)


def running(pool: PoolState, nodes: Nodes, lines: Mapping[str, Line], measure: Measure) -> Iterable[Occupant]:
    """The runs that may have to give way, those of a gang as one."""
    together: dict[tuple[str, str, str], list[RunningJob]] = defaultdict(list)
    for run in pool.running:
        if run.queue in lines:
            together[run.queue, run.gang_id, "" if run.gang_id else run.run_id].append(run)
    for runs in together.values():
        yield _occupant(runs, pool, nodes, lines, measure)


def planned(
    placed: Iterable[tuple[QueuedJob, Room]],
    leases: Sequence[PlannedLease],
    line: Line,
    measure: Measure,
    class_of: Callable[[str], PriorityClass],
) -> Occupant:
    """Leases of this very round, which a more urgent job may still take the place of."""
    placed = list(placed)
    return Occupant(
        line=line,
        priority_class=_hardest(class_of(job.priority_class) for job, _ in placed),
        parts=[Part(room, job.requirements) for job, room in placed],
        amounts=total_of([measure.of(job.requirements) for job, _ in placed], measure.nothing),
        leases=leases,
    )


def _occupant(
    runs: Sequence[RunningJob], pool: PoolState, nodes: Nodes, lines: Mapping[str, Line], measure: Measure
) -> Occupant:
    held = [(nodes.room(run.executor, run.node), as_requirements(run.used)) for run in runs]
    return Occupant(
        line=lines[runs[0].queue],
        priority_class=_hardest(pool.priority_class(run.priority_class) for run in runs),
        parts=[Part(room, amounts) for room, amounts in held if room],
        amounts=total_of([measure.of(amounts) for _, amounts in held], measure.nothing),
        runs=sorted(runs, key=lambda run: run.run_id),
        since=max(run.leased_at.timestamp() for run in runs),
    )


def _hardest(classes: Iterable[PriorityClass]) -> PriorityClass:
    """A gang is as hard to move as the hardest of its members."""
    return max(classes, key=lambda known: (known.priority, not known.preemptible))


def _cheapness(occupant: Occupant) -> tuple[int, float, str]:
    return occupant.cheapness


def _together(held: Sequence[Requirements]) -> Requirements:
    if len(held) == 1:
        return held[0]
    resources: dict[str, int] = defaultdict(int)
    for each in held:
        for name, amount in each.resources:
            resources[name] += amount
    return Requirements(
        cpu_millicores=sum(each.cpu_millicores for each in held),
        memory_bytes=sum(each.memory_bytes for each in held),
        resources=tuple(sorted(resources.items())),
    )
