"""A round: the queue furthest below its share goes next, until nothing more fits or may start."""

import heapq
from collections.abc import Iterator
from enum import Enum, auto
from functools import cache

from scheduler.planning import reasons, record
from scheduler.planning.fairness import Measure
from scheduler.planning.gangs import Gangs
from scheduler.planning.limits import ClassLimits
from scheduler.planning.lines import Line, Together, Turn
from scheduler.planning.nodes import Nodes
from scheduler.planning.occupants import Occupants, planned, running
from scheduler.planning.plans import Plan, PlannedLease
from scheduler.planning.preemption import Preemption
from scheduler.planning.shares import shares_of
from scheduler.planning.state import Gang, PoolState
from scheduler.planning.trials import Board, Trial


def plan(pool: PoolState) -> Plan:
    """Place queued jobs, one after the other, until nothing more fits or may start.

    The queue whose dominant share, times its priority factor, is smallest goes next. Within a queue jobs go by
    priority class, priority, time of submission, then id; one that fits nowhere now does not hold up those
    behind it. Among nodes that fit, the fullest is filled first. Where none fits, others may have to give way.
    """
    return _Round(pool).make()


class _Outcome(Enum):
    STARTS = auto()
    WAITS = auto()
    """Those behind it may still start."""
    HOLDS = auto()
    """Those behind it wait too."""


class _Round:
    """A plan in the making."""

    def __init__(self, pool: PoolState) -> None:
        self._pool = pool
        self._board = _board(pool)
        self._lines = {queue.name: Line(queue, self._board.measure) for queue in pool.queues}
        self._waiting: dict[str, Iterator[Together]] = {}
        self._turns: list[Turn] = []
        self._leases: list[PlannedLease] = []
        self._is_full = False
        self._unplaced = reasons.Unplaced(self._board.nodes)
        self._why = record.Reasons.none()
        self._gangs = Gangs(self._board)
        self._most_urgent = _most_urgent(pool)
        for occupant in running(pool, self._board.nodes, self._lines, self._board.measure):
            self._board.preemption.note(occupant)

    def make(self) -> Plan:
        for line in self._lines.values():
            self._line_up(line)
        while self._turns and not self._is_full:
            turn = heapq.heappop(self._turns)
            line = self._lines[turn[-1]]
            # What was taken from a queue gave it another turn: the one it had is void.
            if line.name in self._waiting and turn == line.turn:
                self._take_turn(line)
        return self._plan()

    def _line_up(self, line: Line) -> None:
        if line.state.cordoned:
            self._why.held[line.name] = reasons.cordoned(line.state)
        elif line.state.jobs:
            self._waiting[line.name] = line.waiting(self._pool.priority_classes)
            heapq.heappush(self._turns, line.turn)

    def _take_turn(self, line: Line) -> None:
        """Start the first of its jobs that may; the queue is done when none is left."""
        for jobs in self._waiting[line.name]:
            outcome = self._start(line, jobs)
            if outcome is _Outcome.STARTS:
                heapq.heappush(self._turns, line.turn)
                return
            if outcome is _Outcome.HOLDS:
                break
        self._waiting.pop(line.name, None)

    def _start(self, line: Line, jobs: Together) -> _Outcome:
        if self._holds(line, 1):
            return _Outcome.HOLDS
        if gang := jobs[0].gang:
            return self._start_gang(line, jobs, gang)
        return self._start_alone(line, jobs)

    def _start_alone(self, line: Line, jobs: Together) -> _Outcome:
        job, wanted = jobs[0], jobs[0].requirements
        fits_nowhere = self._unplaced.covers(wanted)
        if (fits_nowhere and not self._board.preemption.is_possible) or self._limit(line, jobs):
            return _Outcome.WAITS
        trial = Trial(self._board, line)
        if (fits_nowhere or not trial.place(job)) and not trial.make_place(job):
            self._unplaced.add(wanted)
            return _Outcome.WAITS
        self._keep(line, trial)
        return _Outcome.STARTS

    def _start_gang(self, line: Line, jobs: Together, gang: Gang) -> _Outcome:
        found = (
            reasons.too_many_at_once(gang, len(jobs), line.state, self._pool)
            or self._limit(line, jobs)
            or self._gangs.place(line, jobs, gang)
        )
        if not isinstance(found, Trial):
            self._why.gangs[line.name][gang.id] = found
            return _Outcome.WAITS
        if self._holds(line, len(jobs)):
            found.undo()
            return _Outcome.HOLDS
        self._keep(line, found)
        return _Outcome.STARTS

    def _keep(self, line: Line, trial: Trial) -> None:
        leases = [PlannedLease(queue=line.name, job=job, node=room.node) for job, room in trial.placed]
        self._leases += leases
        for robbed in trial.keep():
            if robbed.name in self._waiting:
                heapq.heappush(self._turns, robbed.turn)
        board = self._board
        if any(board.class_of(job.priority_class).priority < self._most_urgent for job, _ in trial.placed):
            occupant = planned(trial.placed, leases, line, board.measure, board.class_of)
            board.preemption.note(occupant)

    def _limit(self, line: Line, jobs: Together) -> str:
        """The limit of the class that would be exceeded, in a sentence."""
        for name in {job.priority_class for job in jobs}:
            asked = [self._board.measure.of(job.requirements) for job in jobs if job.priority_class == name]
            if why := self._board.limits.exceeded(line, name, asked):
                self._why.limited[line.name][name] = why
                return why
        return ""

    def _holds(self, line: Line, jobs: int) -> bool:
        """Whether so many more may not start now. Where the pool is what holds them every queue waits, so that
        tokens gather for a gang.
        """
        held, started = self._why.held, len(self._leases)
        if started + jobs > self._pool.leases_per_round:
            self._is_full = True
        elif not line.may_start(jobs):
            held[line.name] = reasons.queue_rate(line.state)
        elif not self._pool.rate.allows(started + jobs):
            held |= dict.fromkeys(self._waiting, reasons.pool_rate(self._pool))
            self._turns.clear()
        else:
            return False
        return True

    def _plan(self) -> Plan:
        evicted = self._board.occupants.evicted
        leases = record.kept(self._leases, evicted)
        self._why.add_cut_off(self._pool.queues)
        return Plan(
            leases=leases,
            preemptions=list(record.preemptions(evicted)),
            unplaced=self._unplaced.by_key(),
            gangs=dict(self._why.gangs),
            limited=dict(self._why.limited),
            held=self._why.held,
            rate=self._pool.rate.take(len(leases)),
            queue_rates={line.name: line.state.rate.take(line.started) for line in self._lines.values()},
            more=self._is_full or len(leases) < len(self._leases),
        )


def _board(pool: PoolState) -> Board:
    nodes = Nodes(pool.nodes, node_id_label=pool.node_id_label)
    limited = {name for fractions in pool.limits.values() for name in fractions}
    measure = Measure((room.node for room in nodes.rooms), shared=pool.fair_share_resources, limited=limited)
    occupants = Occupants()
    preemption = Preemption(
        nodes,
        occupants,
        shares=cache(lambda: shares_of(pool.queues, measure)),
        protected=pool.protected_fraction,
    )
    return Board(
        nodes=nodes,
        measure=measure,
        occupants=occupants,
        preemption=preemption,
        limits=ClassLimits(pool.limits, measure),
        class_of=pool.priority_class,
    )


def _most_urgent(pool: PoolState) -> int:
    names = {job.priority_class for queue in pool.queues for job in queue.jobs}
    return max((pool.priority_class(name).priority for name in names), default=0)
