"""categorizer.json: the category of a failure from everything an executor saw."""

from typing import Any

import pytest

from policies.documents import parse_categories
from policies.failures import Signals
from tests.conformance.cases import Case, cases
from tests.conformance.pods import container_ends, known, pod_events

POD = {"phase", "reason", "message", "containers", "initContainers"}
CALL = {"entry", "pod_error_message", "pod_events"}


@pytest.mark.parametrize("case", cases("categorizer.json"))
def test_a_failure_gets_its_category_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("config", "pod", "call"), ("category", "subcategory", "action", "hint"))
    categories = parse_categories(case.given["config"])
    classified = categories.classify(_signals(case.given["pod"], case.given["call"]))
    case.check(
        {
            "category": classified.failure.category,
            "subcategory": classified.failure.subcategory,
            "action": classified.disposition,
            "hint": classified.hint,
        }
    )


def _signals(pod: dict[str, Any] | None, call: dict[str, Any]) -> Signals | None:
    known(call, CALL)
    if pod is None:
        return None
    known(pod, POD)
    ends = container_ends(pod)
    reason = pod.get("reason") or ""
    match call["entry"]:
        case "container_state":
            return Signals(containers=ends, reason=reason)
        case "pod_error":
            message = call.get("pod_error_message") or ""
            return Signals(
                containers=ends, reason=reason, message=message, events=pod_events(call.get("pod_events"))
            )
        case other:
            raise KeyError(f"The runner does not know the entry {other!r}.")
