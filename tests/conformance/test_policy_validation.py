"""policy_validation.json: which policies are accepted, and the first problem of those that are not."""

from typing import Any

import pytest

from policies.documents import DocumentInvalid, policy_from_object
from tests.conformance.cases import Case, cases


@pytest.mark.parametrize("case", cases("policy_validation.json"))
def test_a_policy_is_accepted_or_refused_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("policy",), ("valid", "field", "violation"))
    case.check(_validated(case.given["policy"]))


def _validated(policy: object) -> dict[str, Any]:
    try:
        policy_from_object(policy)
    except DocumentInvalid as invalid:
        first = invalid.problems[0]
        return {"valid": False, "field": first.path, "violation": first.code}
    return {"valid": True}
