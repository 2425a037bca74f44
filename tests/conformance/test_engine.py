"""engine.json: one decision from policy, failure and the number of genuine failures."""

from typing import Any

import pytest

from policies.decision import decide
from policies.documents import mutation_document, policy_from_object
from policies.failures import Failure
from tests.conformance.cases import Case, cases

GIVEN = ("global_max_retries", "policy", "run_error", "genuine_failures_including_this_one")
EXPECTED = ("decision", "should_retry", "reason", "mutation")


@pytest.mark.parametrize("case", cases("engine.json"))
def test_a_decision_comes_out_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(GIVEN, EXPECTED)
    failure = _failure(case.given["run_error"])
    decision = decide(
        policy_from_object(case.given["policy"]),
        failure,
        [failure] * case.given["genuine_failures_including_this_one"],
        global_limit=case.given["global_max_retries"],
    )
    case.check(
        {
            "decision": decision.verdict,
            "should_retry": decision.retries,
            "reason": decision.reason,
            "mutation": mutation_document(decision.mutation),
        }
    )


def _failure(error: dict[str, Any] | None) -> Failure | None:
    if error is None:
        return None
    return Failure(category=error["failure_category"], subcategory=error["failure_subcategory"])
