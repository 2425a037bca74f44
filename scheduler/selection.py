"""Which jobs a verb is about, when they are not named one by one."""

from dataclasses import dataclass

from scheduler.errors import Invalid
from scheduler.filters import FilterInvalid, JobFilter, in_words, job_filter_of
from scheduler.states import JobState

OPEN_JOB_STATES = (JobState.QUEUED, JobState.LEASED, JobState.PENDING, JobState.RUNNING)
"""States of jobs that something can be asked of: neither ended nor on the way to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Jobs of a queue, those with a run on an executor, those of a filter; everything that is named must hold."""

    queue: str = ""
    job_set: str = ""
    """Of the queue."""
    executor: str = ""
    """Where the job has a run that has not ended."""
    node: str = ""
    """Of the executor."""
    states: tuple[str, ...] = ()
    """Any of these; none means every open state."""
    priority_classes: tuple[str, ...] = ()
    """Any of these; none means every class."""
    filter: str = ""
    """In the filter language, as the text of an address: `category.any=oom&node.last!=gpu-07`."""

    def __post_init__(self) -> None:
        """Raises Invalid for names that no name can be."""
        names = (self.queue, self.job_set, self.executor, self.node, self.filter)
        if "\x00" in "".join((*names, *self.states, *self.priority_classes)):
            raise Invalid("A name holds a character that no name can hold.")

    @property
    def open_states(self) -> tuple[str, ...]:
        """The states that are looked for."""
        return self.states or OPEN_JOB_STATES

    @property
    def wanted(self) -> JobFilter:
        """What the filter says. Raises Invalid."""
        try:
            return job_filter_of(self.filter, from_form=False)
        except FilterInvalid as error:
            raise Invalid(str(error), path="filter") from error

    def check(self) -> None:
        """Raises Invalid for what names no jobs, so that a forgotten field never means everything."""
        if self.job_set and not self.queue:
            raise Invalid("A job set belongs to a queue. Name the queue too.", path="queue")
        if self.node and not self.executor:
            raise Invalid("A node belongs to an executor. Name the executor too.", path="executor")
        if self.filter and not self.wanted:
            raise Invalid("The filter says nothing of the jobs. Say which are meant.", path="filter")
        if not (self.queue or self.executor or self.filter):
            raise Invalid(
                "Name jobs, a queue, an executor or a filter: nothing means nothing, not everything."
            )
        for index, state in enumerate(self.states):
            if state not in OPEN_JOB_STATES:
                states = ", ".join(OPEN_JOB_STATES)
                raise Invalid(f"Takes {states}; '{state[:60]}' is none of them.", path=f"states[{index}]")

    def __str__(self) -> str:
        named = {
            "queue": self.queue,
            "job set": self.job_set,
            "executor": self.executor,
            "node": self.node,
            "states": ", ".join(self.states),
            "priority classes": ", ".join(self.priority_classes),
        }
        told = [f"{name} {value}" for name, value in named.items() if value]
        return "; ".join([*told, in_words(self.wanted)] if self.filter else told)
