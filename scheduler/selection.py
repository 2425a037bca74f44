"""Which jobs a verb is about, when they are not named one by one."""

from dataclasses import dataclass

from scheduler.errors import Invalid
from scheduler.states import JobState

OPEN_JOB_STATES = (JobState.QUEUED, JobState.LEASED, JobState.PENDING, JobState.RUNNING)
"""States of jobs that something can be asked of: neither ended nor on the way to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Jobs of a queue, those with a run on an executor, or both; everything that is named must hold."""

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

    def __post_init__(self) -> None:
        """Raises Invalid for names that no name can be."""
        if "\x00" in "".join(
            (self.queue, self.job_set, self.executor, self.node, *self.states, *self.priority_classes)
        ):
            raise Invalid("A name holds a character that no name can hold.")

    @property
    def open_states(self) -> tuple[str, ...]:
        """The states that are looked for."""
        return self.states or OPEN_JOB_STATES

    def check(self) -> None:
        """Raises Invalid for what names no jobs, so that a forgotten field never means everything."""
        if self.job_set and not self.queue:
            raise Invalid("A job set belongs to a queue. Name the queue too.", path="queue")
        if self.node and not self.executor:
            raise Invalid("A node belongs to an executor. Name the executor too.", path="executor")
        if not (self.queue or self.executor):
            raise Invalid("Name jobs, a queue or an executor: nothing means nothing, not everything.")
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
        return "; ".join(f"{name} {value}" for name, value in named.items() if value)
