"""Lines: a queue while a plan is made, with its jobs in order, what it holds, and what it may still start."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from scheduler.planning.fairness import Amounts, Measure, added, reduced
from scheduler.planning.rooms import as_requirements
from scheduler.planning.state import PriorityClass, QueuedJob, QueueState

type Together = tuple[QueuedJob, ...]
"""A job of its own, or all waiting members of a gang."""
type Turn = tuple[float, int, str]


class Line:
    """A queue and its waiting jobs: by priority class, priority, time of submission, then id."""

    def __init__(self, state: QueueState, measure: Measure) -> None:
        self.state = state
        self.name = state.name
        self._measure = measure
        self._held = measure.of(as_requirements(state.used))
        self._by_class = {
            name: measure.of(as_requirements(used)) for name, used in state.used_by_class.items()
        }
        self.nothing: Amounts = measure.nothing
        self.started = 0
        """Jobs that this plan starts."""
        self._starting: set[str] = set()
        self.share = measure.dominant_share(self._held)
        """The part of the pool that it holds."""

    def waiting(self, classes: Mapping[str, PriorityClass]) -> Iterator[Together]:
        """Its jobs in order. A gang stands where the first of its members does."""
        return iter(in_order(self.state.jobs, classes))

    def of_class(self, priority_class: str) -> Amounts:
        """What its jobs of the class hold."""
        return self._by_class.get(priority_class, self.nothing)

    @property
    def standing(self) -> float:
        """Where this is smallest, the turn is. Of two queues always at work, one of twice the factor gets half."""
        return self.share * self.state.priority_factor

    def standing_without(self, amounts: Amounts) -> float:
        """What the standing were without some of what it holds."""
        return self.share_without(amounts) * self.state.priority_factor

    def share_without(self, amounts: Amounts) -> float:
        """What part it held without some of what it holds."""
        return self._measure.dominant_share(reduced(self._held, amounts))

    @property
    def turn(self) -> Turn:
        """Sorts the lines. Jobs that reserve nothing never raise the standing: by the count such queues alternate too."""
        return (self.standing, self.started, self.name)

    def may_start(self, jobs: int) -> bool:
        """Its rate allows so many more."""
        return self.state.rate.allows(self.started + jobs)

    def starts(self, priority_class: str) -> bool:
        """Jobs of the class are started by this plan, or were before it was thought better of."""
        return priority_class in self._starting

    def take(self, priority_class: str, amounts: Amounts, *, started: int = 1) -> None:
        """It holds so much more; `started` counts the jobs that start."""
        self._change(
            priority_class, added(self._held, amounts), added(self.of_class(priority_class), amounts)
        )
        self.started += started
        if started:
            self._starting.add(priority_class)

    def give(self, priority_class: str, amounts: Amounts, *, started: int = 0) -> None:
        """It holds so much less; `started` counts jobs that did not start after all."""
        self._change(
            priority_class, reduced(self._held, amounts), reduced(self.of_class(priority_class), amounts)
        )
        self.started -= started

    def _change(self, priority_class: str, held: Amounts, of_class: Amounts) -> None:
        self._held, self._by_class[priority_class] = held, of_class
        self.share = self._measure.dominant_share(held)


def in_order(jobs: Sequence[QueuedJob], classes: Mapping[str, PriorityClass]) -> list[Together]:
    """The jobs of a queue as they take their turns, members of a gang together."""
    urgency = {name: -known.priority for name, known in classes.items()}
    ordered = sorted(
        jobs, key=lambda job: (urgency.get(job.priority_class, 0), job.priority, job.submitted_at, job.id)
    )
    gangs: dict[str, list[QueuedJob]] = defaultdict(list)
    for job in ordered:
        if job.gang:
            gangs[job.gang.id].append(job)
    if not gangs:
        return [(job,) for job in ordered]
    return [
        tuple(gangs.pop(job.gang.id)) if job.gang else (job,)
        for job in ordered
        if not job.gang or job.gang.id in gangs
    ]
