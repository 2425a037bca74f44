"""failure_count.json: which runs count as failures, and which as attempts while the retry engine is off."""

import pytest

from policies.tally import RunEnd, attempted_runs, genuine_failures
from tests.conformance.cases import Case, cases

RUN = {"failed", "ever_preempted", "returned", "succeeded", "cancelled", "run_attempted"}


@pytest.mark.parametrize("case", cases("failure_count.json"))
def test_the_tallies_come_out_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("runs",), ("genuine_failures", "attempts_for_legacy_limit"))
    runs = [_run_end(run) for run in case.given["runs"]]
    case.check(
        {
            "genuine_failures": len(genuine_failures(runs)),
            "attempts_for_legacy_limit": attempted_runs(runs),
        }
    )


def _run_end(run: dict[str, bool]) -> RunEnd:
    if set(run) - RUN:
        raise KeyError(f"The runner does not know {sorted(set(run) - RUN)}.")
    return RunEnd(
        failed=run.get("failed", False),
        returned=run.get("returned", False),
        ever_preempted=run.get("ever_preempted", False),
        attempted=run.get("run_attempted", False),
    )
