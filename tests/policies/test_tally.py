"""Tallies: which runs spend retries, and which spend attempts of the lease-return limit."""

from policies.failures import Failure
from policies.tally import RunEnd, attempted_returns, attempted_runs, genuine_failures

OOM = Failure(category="oom")
FAILED = RunEnd(failed=True, attempted=True, failure=OOM)
PREEMPTED = RunEnd(failed=True, ever_preempted=True, attempted=True)
RETURNED = RunEnd(failed=True, returned=True, attempted=True)
NOT_STARTED = RunEnd(failed=True, returned=True)
ACTIVE = RunEnd()
EXPIRED = RunEnd(failed=True, attempted=True, failure=None)


def test_only_genuine_failures_spend_retries_and_they_keep_their_order() -> None:
    runs = [PREEMPTED, FAILED, RETURNED, EXPIRED, NOT_STARTED, ACTIVE]
    assert genuine_failures(runs) == (OOM, None)


def test_with_the_engine_off_every_attempted_run_counts_towards_lease_returns() -> None:
    assert attempted_runs([PREEMPTED, FAILED, RETURNED, NOT_STARTED, ACTIVE]) == 3


def test_with_the_engine_on_only_attempted_returns_do() -> None:
    assert attempted_returns([PREEMPTED, FAILED, RETURNED, NOT_STARTED, RETURNED, ACTIVE]) == 2
