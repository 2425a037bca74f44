"""policy_documents.json: how documents are decoded, before they are validated."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from policies.documents import (
    DocumentInvalid,
    PolicyDraft,
    RuleDraft,
    mutation_document,
    parse_action,
    read_policy,
)
from policies.tree import tree_of_json, tree_of_text
from tests.conformance.cases import Case, cases

ZERO: tuple[Any, ...] = (None, "", 0, [], {})


@pytest.mark.parametrize("case", cases("policy_documents.json", "action_cases"))
def test_an_action_is_understood_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("json_input",), ("accepted", "action"))
    try:
        action = parse_action(json.loads(case.given["json_input"]))
    except ValueError:
        case.check({"accepted": False, "action": None})
    else:
        case.check({"accepted": True, "action": "Unspecified" if action is None else str(action)})


@pytest.mark.parametrize("case", cases("policy_documents.json", "file_cases"))
def test_a_file_is_decoded_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("text",), ("accepted", "policy"))
    case.check(
        _decoded(
            case,
            lambda: read_policy(tree_of_text(case.given["text"]), envelope_required=True),
            key="accepted",
        )
    )


@pytest.mark.parametrize("case", cases("policy_documents.json", "rest_body_cases"))
def test_a_rest_body_is_decoded_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("body",), ("decoded", "policy"))
    case.check(
        _decoded(
            case,
            lambda: read_policy(tree_of_json(case.given["body"]), envelope_required=False),
            key="decoded",
        )
    )


def _decoded(case: Case, read: Callable[[], PolicyDraft], *, key: str) -> dict[str, Any]:
    """What the decoding gave. Policies are compared without zero values, on both sides."""
    try:
        draft = read()
    except DocumentInvalid:
        return {key: False}
    if draft.misread or any(problem.code == "present" for problem in draft.problems):
        return {key: False}
    if "policy" not in case.expect:
        return {key: True}
    policy, wanted = _policy(draft), case.expect["policy"]
    return {key: True, "policy": wanted if policy == _without_zeros(wanted) else policy}


def _policy(draft: PolicyDraft) -> Any:
    return _without_zeros(
        {
            "name": draft.name,
            "retryLimit": draft.retry_limit,
            "defaultAction": draft.default_action,
            "rules": [_rule(rule) for rule in draft.rules],
        }
    )


def _rule(rule: RuleDraft) -> dict[str, Any]:
    return {
        "action": rule.action,
        "onCategory": rule.on_category,
        "onSubcategory": rule.on_subcategory,
        "mutate": mutation_document(rule.mutation),
    }


def _without_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        smaller = {key: _without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in smaller.items() if item not in ZERO}
    if isinstance(value, list):
        return [_without_zeros(item) for item in value]
    return value
