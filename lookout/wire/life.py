"""What can be asked of jobs that are there: to end, to give way, to go by another priority."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

from lookout.wire.connection import Connection
from lookout.wire.filters import Filters, as_query


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSelection:
    """Jobs of a queue, with a run on an executor, or of filters. All that is named must hold.

    Raises ValueError for a filter without a value, which would mean more jobs than it says, and Unsendable for what is
    no filter.
    """

    queue: str = ""
    job_set_id: str = ""
    executor: str = ""
    node: str = ""
    states: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    filters: Filters = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError and Unsendable."""
        for name, values in as_query(self.filters).items():
            if not values:
                raise ValueError(f"The filter {name} has no value.")

    @property
    def json(self) -> dict[str, Any]:
        """As it is sent: what is named, and nothing else."""
        named = {
            "queue": self.queue,
            "jobSetId": self.job_set_id,
            "executor": self.executor,
            "node": self.node,
            "states": list(self.states),
            "priorityClasses": list(self.priority_classes),
            "filter": urlencode(as_query(self.filters), doseq=True),
        }
        return {name: value for name, value in named.items() if value}


type Jobs = Sequence[str] | JobSelection
"""Ids, all or none of them; or where the jobs are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Ids of jobs by what a cancellation did: ended at once, asked to end, or had ended before."""

    cancelled: tuple[str, ...] = ()
    cancelling: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reprioritized:
    """Ids of jobs by what became of them: of another priority now, or as they were (of a selection 10,000 at most)."""

    reprioritized: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempting:
    """Ids of jobs by what became of them: their run was asked to give way, or they had none to ask."""

    preempting: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    more: bool = False


class _Batch(Protocol):
    @property
    def more(self) -> bool: ...


class LifeOfJobs:
    """The part of the client that changes jobs. Each call goes on until none like those asked for is left."""

    _connection: Connection

    def cancel_jobs(self, jobs: Jobs, *, reason: str = "") -> Cancelled:
        """Cancel jobs: those waiting end at once, those running are asked to end. Twice changes nothing."""
        done = self._ask(Cancelled, "cancel", jobs, reason=reason)
        return Cancelled(
            cancelled=tuple(job for each in done for job in each.cancelled),
            cancelling=tuple(job for each in done for job in each.cancelling),
            unchanged=tuple(job for each in done for job in each.unchanged),
        )

    def reprioritize_jobs(self, jobs: Jobs, *, priority: int) -> Reprioritized:
        """Give jobs another priority; the smaller goes first. Twice changes nothing."""
        done = self._ask(Reprioritized, "reprioritize", jobs, priority=priority)
        moved = {job: None for each in done for job in each.reprioritized}
        return Reprioritized(
            reprioritized=tuple(moved),
            unchanged=tuple(job for each in done for job in each.unchanged if job not in moved),
        )

    def preempt_jobs(self, jobs: Jobs, *, reason: str = "") -> Preempting:
        """Have the runs of jobs give way. Raises Conflict where a job that is named is not preemptible."""
        done = self._ask(Preempting, "preempt", jobs, reason=reason)
        return Preempting(
            preempting=tuple(job for each in done for job in each.preempting),
            unchanged=tuple(job for each in done for job in each.unchanged),
        )

    def _ask[T: _Batch](self, kind: type[T], word: str, jobs: Jobs, **told: Any) -> list[T]:
        named = jobs.json if isinstance(jobs, JobSelection) else {"jobIds": list(jobs)}
        body = {**named, **told}
        done = [self._connection.ask_for(kind, "POST", f"jobs/{word}", body=body)]
        while done[-1].more:
            done.append(self._connection.ask_for(kind, "POST", f"jobs/{word}", body=body))
        return done
