"""categorizer_config.json: which categories are accepted, and the first problem of those that are not."""

from typing import Any

import pytest

from policies.documents import DocumentInvalid, parse_categories
from tests.conformance.cases import Case, cases


@pytest.mark.parametrize("case", cases("categorizer_config.json"))
def test_categories_are_accepted_or_refused_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("config",), ("valid", "violation"))
    case.check(_validated(case.given["config"]))


def _validated(config: object) -> dict[str, Any]:
    try:
        parse_categories(config)
    except DocumentInvalid as invalid:
        return {"valid": False, "violation": invalid.problems[0].code}
    return {"valid": True}
