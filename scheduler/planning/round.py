"""A round: which queued job starts on which node next."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scheduler.placement import Obstacle, ObstacleKind, Requirements, lacking, obstacle_to, why_nowhere
from scheduler.planning.plans import Plan, PlannedLease
from scheduler.planning.state import NodeState, PoolState, QueuedJob, QueueState, Use

OWN_REASONS = 1_000
"""So many requirements are told why by their own numbers; beyond them, by those of one that asks for no more."""


def plan(pool: PoolState) -> Plan:
    """Place queued jobs, one after the other, until nothing more fits or may start.

    Within a queue jobs go by priority, then time of submission, then id; one that fits nowhere now does not
    hold up those behind it. Among nodes that fit, the fullest is filled first.
    """
    rooms = [_Room(state) for state in pool.nodes]
    return _Round(pool, rooms).make()


def standing(*, used: Use, total: Use, priority_factor: float) -> float:
    """Whose turn it is: the queue where this is smallest goes next.

    The larger of its shares of the pool's CPU and memory, times its priority factor: of two queues that
    always have work, one with twice the factor gets half as much. Fair share takes this function's place.
    """
    cpu = used.cpu_millicores / total.cpu_millicores if total.cpu_millicores else 0.0
    memory = used.memory_bytes / total.memory_bytes if total.memory_bytes else 0.0
    return max(cpu, memory) * priority_factor


class _Room:
    """What is left of a node while a plan is made."""

    def __init__(self, state: NodeState) -> None:
        node, used = state.capacity, state.used
        self.node = node
        # A node may have shrunk below what its runs hold: then nothing is left, not less than nothing.
        self.cpu_millicores = max(0, node.cpu_millicores - used.cpu_millicores)
        self.memory_bytes = max(0, node.memory_bytes - used.memory_bytes)
        self.resources = {
            name: max(0, amount - used.resources.get(name, 0)) for name, amount in node.resources.items()
        }

    def lacks(self, wanted: Requirements) -> Obstacle | None:
        return lacking(
            wanted,
            cpu_millicores=self.cpu_millicores,
            memory_bytes=self.memory_bytes,
            resources=self.resources,
        )

    def take(self, wanted: Requirements) -> None:
        self.cpu_millicores -= wanted.cpu_millicores
        self.memory_bytes -= wanted.memory_bytes
        for name, amount in wanted.resources:
            self.resources[name] -= amount

    def emptiness(self) -> tuple[float, str, str]:
        """Sorts the fullest node first; equally full ones by name."""
        cpu = self.cpu_millicores / max(1, self.node.cpu_millicores)
        memory = self.memory_bytes / max(1, self.node.memory_bytes)
        return (cpu + memory, self.node.executor, self.node.name)


class _Search:
    """The nodes for jobs of equal requirements. Rooms only shrink, so a node once too full is never tried again."""

    def __init__(self, wanted: Requirements, rooms: Sequence[_Room], *, node_id_label: str) -> None:
        self._wanted = wanted
        self._rooms = rooms
        self._node_id_label = node_id_label
        self._obstacles: list[Obstacle] = []
        self._candidates = sorted(self._look(), key=_Room.emptiness)
        self._next = 0

    def find(self) -> _Room | None:
        while self._next < len(self._candidates):
            room = self._candidates[self._next]
            if room.lacks(self._wanted) is None:
                return room
            self._next += 1
        return None

    def why_not(self) -> str:
        if not self._rooms:
            return "No node has been heard of. The job waits until an executor reports one."
        if self._candidates:
            self._look()
        return why_nowhere(self._obstacles, free=True)

    def _look(self) -> list[_Room]:
        """The nodes it could go to now; what is wrong with the others is kept."""
        self._obstacles = []
        found = []
        for room in self._rooms:
            if obstacle := self._obstacle(room):
                self._obstacles.append(obstacle)
            else:
                found.append(room)
        return found

    def _obstacle(self, room: _Room) -> Obstacle | None:
        if not room.node.schedulable:
            return Obstacle(kind=ObstacleKind.CLOSED, name=room.node.closed_because)
        return obstacle_to(
            self._wanted,
            room.node,
            node_id_label=self._node_id_label,
            cpu_millicores=room.cpu_millicores,
            memory_bytes=room.memory_bytes,
            resources=room.resources,
        )


class _Unplaced:
    """Requirements that no node takes any more, each with its reason."""

    def __init__(self) -> None:
        self.reasons: dict[Requirements, str] = {}
        self._smallest: dict[tuple[object, ...], list[tuple[Requirements, str]]] = defaultdict(list)

    def add(self, wanted: Requirements, reason: str) -> None:
        self.reasons[wanted] = reason
        self._smallest[self._kind(wanted)].append((wanted, reason))

    def covers(self, wanted: Requirements) -> bool:
        """No node takes these either: they are among those, or there are very many and they ask for no less."""
        if wanted in self.reasons:
            return True
        if len(self.reasons) < OWN_REASONS:
            return False
        for other, reason in self._smallest[self._kind(wanted)]:
            if other.cpu_millicores <= wanted.cpu_millicores and other.memory_bytes <= wanted.memory_bytes:
                self.reasons[wanted] = reason
                return True
        return False

    @staticmethod
    def _kind(wanted: Requirements) -> tuple[object, ...]:
        return (
            wanted.resources,
            wanted.node_selector,
            wanted.affinity,
            wanted.tolerations,
            wanted.avoided_nodes,
            wanted.needed_fields,
        )


class _Line:
    """A queue while a plan is made: its jobs in order, what it holds, what it may still start."""

    def __init__(self, state: QueueState) -> None:
        self.state = state
        self.rate = state.rate
        self.used = state.used
        self.placed = 0
        ordered = sorted(state.jobs, key=lambda job: (job.priority, job.submitted_at, job.id))
        self.waiting: Iterator[QueuedJob] = iter(ordered)

    def take(self, wanted: Requirements) -> None:
        self.rate = self.rate.take(1)
        self.placed += 1
        self.used = Use(
            cpu_millicores=self.used.cpu_millicores + wanted.cpu_millicores,
            memory_bytes=self.used.memory_bytes + wanted.memory_bytes,
        )


class _Round:
    """A plan in the making."""

    def __init__(self, pool: PoolState, rooms: Sequence[_Room]) -> None:
        self._pool = pool
        self._rooms = rooms
        self._total = Use(
            cpu_millicores=sum(room.node.cpu_millicores for room in rooms),
            memory_bytes=sum(room.node.memory_bytes for room in rooms),
        )
        self._lines = {state.name: _Line(state) for state in pool.queues if state.jobs or state.cordoned}
        self._searches: dict[Requirements, _Search] = {}
        self._unplaced = _Unplaced()
        self._held: dict[str, str] = {}
        self._leases: list[PlannedLease] = []
        self._rate = pool.rate

    def make(self) -> Plan:
        turns = [self._turn(line) for line in self._lines.values() if self._may_start(line)]
        heapq.heapify(turns)
        while turns and len(self._leases) < self._pool.leases_per_round:
            line = self._lines[heapq.heappop(turns)[-1]]
            if self._may_start(line) and self._place_one(line):
                heapq.heappush(turns, self._turn(line))
        return Plan(
            leases=self._leases,
            unplaced={wanted.key: reason for wanted, reason in self._unplaced.reasons.items()},
            held=self._held,
            rate=self._rate,
            queue_rates={name: line.rate for name, line in self._lines.items()},
            more=bool(turns),
        )

    def _turn(self, line: _Line) -> tuple[float, int, str]:
        factor = line.state.priority_factor
        # Jobs that reserve nothing never raise the standing: the count makes such queues alternate too.
        return (
            standing(used=line.used, total=self._total, priority_factor=factor),
            line.placed,
            line.state.name,
        )

    def _may_start(self, line: _Line) -> bool:
        if reason := self._hold(line):
            self._held[line.state.name] = reason
        return not reason

    def _hold(self, line: _Line) -> str:
        if line.state.cordoned:
            return f"Queue {line.state.name} is cordoned: its jobs wait until it is opened again."
        if not line.rate.allows(1):
            return f"Queue {line.state.name} starts at most {line.rate.rate:g} jobs a second; the rest wait their turn."
        if not self._rate.allows(1):
            return f"The pool starts at most {self._rate.rate:g} jobs a second; the rest wait their turn."
        return ""

    def _place_one(self, line: _Line) -> bool:
        """Place the queue's next job that fits; False when none is left that does."""
        return any(self._place(line, job) for job in line.waiting)

    def _place(self, line: _Line, job: QueuedJob) -> bool:
        wanted = job.requirements
        if self._unplaced.covers(wanted):
            return False
        search = self._searches.get(wanted)
        if search is None:
            search = _Search(wanted, self._rooms, node_id_label=self._pool.node_id_label)
            self._searches[wanted] = search
        room = search.find()
        if room is None:
            self._unplaced.add(wanted, search.why_not())
            return False
        room.take(wanted)
        line.take(wanted)
        self._rate = self._rate.take(1)
        self._leases.append(PlannedLease(queue=line.state.name, job=job, node=room.node))
        return True
