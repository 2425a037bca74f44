"""Rules of preemption: what may leave for whom, in which order, and what its owner is told."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from scheduler.placement import Requirements
from scheduler.planning.fairness import Amounts, added
from scheduler.planning.lines import Line
from scheduler.planning.nodes import Domain
from scheduler.planning.occupants import Occupant
from scheduler.planning.state import PriorityClass, QueuedJob


@dataclass(frozen=True, kw_only=True, slots=True)
class Taker:
    """A job that fits nowhere."""

    job: QueuedJob
    line: Line
    priority_class: PriorityClass
    domain: Domain | None = None

    @property
    def wanted(self) -> Requirements:
        """What it asks."""
        return self.job.requirements

    @property
    def urgency(self) -> int:
        """Of its class."""
        return self.priority_class.priority


class Rule(Protocol):
    """What may leave for a job."""

    @property
    def key(self) -> tuple[str, int]:
        """The same where the same may leave."""

    @property
    def reason(self) -> str:
        """For the owner of what leaves, a sentence."""

    def may_leave(self, occupant: Occupant) -> bool:
        """Whether it is of those that may leave."""

    def order(self, occupant: Occupant) -> tuple[object, ...]:
        """Sorts what leaves first."""

    def allowance(self) -> Callable[[Occupant], bool]:
        """A new count of what leaves: each that is allowed is taken to leave, and the next may not be allowed."""


class ByUrgency:
    """From lower classes, whatever queue and share."""

    def __init__(self, taker: Taker, *, most: int) -> None:
        self._taker = taker
        self._most = most

    @property
    def key(self) -> tuple[str, int]:
        """Classes up to one priority leave for any higher one."""
        return ("urgency", self._most)

    @property
    def reason(self) -> str:
        """What the owner is told."""
        return f"{_by(self._taker)}, whose priority class {self._taker.priority_class.name} is more urgent."

    def may_leave(self, occupant: Occupant) -> bool:
        """What is of a low enough class."""
        return occupant.urgency <= self._most

    def order(self, occupant: Occupant) -> tuple[object, ...]:
        """The cheapest first."""
        return occupant.cheapness

    def allowance(self) -> Callable[[Occupant], bool]:
        """All of it."""
        return lambda _: True


class ToFairShare:
    """From preemptible runs of no higher class, in queues that hold more than the protected part of their share.

    And only while even without the run the turn of its queue would come after the taker's: so nothing is taken
    that would be taken back.
    """

    def __init__(
        self, taker: Taker, giving: Iterable[Line], share: Callable[[Line], float], protected: float
    ) -> None:
        self._taker = taker
        self._giving = frozenset(giving)
        self._share = share
        self._protected = protected

    @property
    def key(self) -> tuple[str, int]:
        """Turns come from the queue furthest below its share on: what does not leave for it leaves for none."""
        return ("share", self._taker.urgency)

    @property
    def reason(self) -> str:
        """What the owner is told."""
        return (
            f"{_by(self._taker)}, which holds less than its fair share of the pool while this one holds more."
        )

    def may_leave(self, occupant: Occupant) -> bool:
        """Runs that are of such a class and queue."""
        return (
            occupant.line in self._giving
            and occupant.priority_class.preemptible
            and bool(occupant.runs)
            and occupant.urgency <= self._taker.urgency
        )

    def order(self, occupant: Occupant) -> tuple[object, ...]:
        """Of the lowest class, of the queue that holds most for its weight, then the cheapest."""
        urgency, *rest = occupant.cheapness
        return (urgency, -occupant.line.standing, *rest)

    def allowance(self) -> Callable[[Occupant], bool]:
        """What the queues give up, one run after the other."""
        given: dict[Line, Amounts] = {}

        def allows(occupant: Occupant) -> bool:
            line = occupant.line
            before = given.get(line, line.nothing)
            after = added(before, occupant.amounts)
            if line.share_without(before) <= self._protected * self._share(line):
                return False
            if line.standing_without(after) <= self._taker.line.standing:
                return False
            given[line] = after
            return True

        return allows


def _by(taker: Taker) -> str:
    return f"Preempted by job {taker.job.id} of queue {taker.line.name}"
