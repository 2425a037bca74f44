"""Count the failures of a job from its runs: what the engine charges, and what the lease-return limit charges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies.failures import Failure

__all__ = ["RunEnd", "attempted_returns", "attempted_runs", "genuine_failures"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnd:
    """What the tallies need of one run; a run that is still active is all False.

    `returned`: its lease came back. `ever_preempted` stays once set. `attempted`: it ended with any error but a lease
    return that says it was not attempted.
    """

    failed: bool = False
    returned: bool = False
    ever_preempted: bool = False
    attempted: bool = False
    failure: Failure | None = None

    @property
    def is_genuine_failure(self) -> bool:
        """Whether the job is to blame: failed, not given back, never preempted. An expired lease counts."""
        return self.failed and not self.returned and not self.ever_preempted


def genuine_failures(runs: Iterable[RunEnd]) -> tuple[Failure | None, ...]:
    """The failures that spend retries, in the order of the runs; their number is what both limits are held to."""
    return tuple(run.failure for run in runs if run.is_genuine_failure)


def attempted_runs(runs: Iterable[RunEnd]) -> int:
    """What the lease-return limit counts with the retry engine off: every attempted run, however it ended."""
    return sum(run.attempted for run in runs)


def attempted_returns(runs: Iterable[RunEnd]) -> int:
    """What the lease-return limit counts with the retry engine on: attempted lease returns and nothing else."""
    return sum(run.attempted and run.returned for run in runs)
