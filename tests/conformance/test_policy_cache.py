"""policy_cache.json: a cache of policies, which Tack does without; each case says why."""

import pytest

from tests.conformance.cases import Case, cases


@pytest.mark.parametrize("case", cases("policy_cache.json"))
def test_there_is_no_cache_to_be_tested(case: Case) -> None:
    raise KeyError(f"{case.id}: the runner knows no cache of policies.")
