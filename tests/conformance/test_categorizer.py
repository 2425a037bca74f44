"""categorizer.json: the category of a failure from everything an executor saw."""

from typing import Any

import pytest

from policies.documents import parse_categories
from policies.failures import ContainerEnd, PodEvent, Signals
from tests.conformance.cases import Case, cases

POD = {"phase", "reason", "message", "containers", "initContainers"}
CALL = {"entry", "pod_error_message", "pod_events"}
STATES = {"name", "terminated", "waiting", "running"}


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
    _known(call, CALL)
    if pod is None:
        return None
    _known(pod, POD)
    ends = (
        *_ends(pod.get("containers"), is_init=False),
        *_ends(pod.get("initContainers"), is_init=True),
    )
    reason = pod.get("reason") or ""
    match call["entry"]:
        case "container_state":
            return Signals(containers=ends, reason=reason)
        case "pod_error":
            message = call.get("pod_error_message") or ""
            return Signals(containers=ends, reason=reason, message=message, events=_events(call))
        case other:
            raise KeyError(f"The runner does not know the entry {other!r}.")


def _ends(containers: list[dict[str, Any]] | None, *, is_init: bool) -> list[ContainerEnd]:
    """The containers that terminated; those that wait or run have not ended."""
    for container in containers or []:
        _known(container, STATES)
    return [
        ContainerEnd(
            name=container["name"],
            exit_code=container["terminated"]["exitCode"],
            reason=container["terminated"].get("reason") or "",
            message=container["terminated"].get("message") or "",
            is_init=is_init,
        )
        for container in containers or []
        if container.get("terminated") is not None
    ]


def _events(call: dict[str, Any]) -> tuple[PodEvent, ...]:
    return tuple(
        PodEvent(type=event["type"], reason=event.get("reason") or "", message=event.get("message") or "")
        for event in call.get("pod_events") or []
    )


def _known(value: dict[str, Any], keys: set[str]) -> None:
    if set(value) - keys:
        raise KeyError(f"The runner does not know {sorted(set(value) - keys)}.")
