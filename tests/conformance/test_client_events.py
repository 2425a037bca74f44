"""client_events.json: how failures reach clients, and which fields each event has."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from policies.failures import INTERNAL, InternalSubcategory
from scheduler.client_events import CAUSES
from scheduler.states import EventKind
from tests.conformance.cases import DATA, Case, cases
from tests.conformance.endings import CATEGORY, ENDINGS, EXIT_CODE, MESSAGE, Ending, pod_error

pytestmark = pytest.mark.django_db

EXPECTED = ("run_level_client_event", "job_level_client_event", "reason", "failure_category",
            "extra_client_fields", "lookout")  # fmt: skip
EVERY_FAILED_EVENT = frozenset({"reason", "failureCategory", "failureSubcategory", "retryable"})
NEVER_TOLD = ("ingressInfo", "utilisation")
"""Of what executors of Tack do not report."""
LIVES = Path(__file__).parent.parent / "scheduler" / "flag_off"
WHEN_DECIDED = " (when a policy decided)"

RUN_EVENTS: Mapping[str, str | None] = {
    "none": None,
    "none (JobRunPreempted gives preempted)": None,
    "lease_returned": EventKind.LEASE_RETURNED,
    "lease_expired": EventKind.LEASE_EXPIRED,
}
JOB_EVENTS: Mapping[str, str | None] = {"failed": EventKind.FAILED, "not emitted at job level": None}
LIMIT = "Maximum number of attempts (1) reached - this job will no longer be retried"
NO_RETRIES = "no rule matched, using default action"
REASONS: Mapping[str, Callable[[Ending], str | None]] = {
    "the pod error message, hint included": lambda _: MESSAGE,
    "-": lambda _: None,
    "Lease expired": lambda _: "Lease expired",
    "message: attempt limit, or tried on all nodes, or fail-fast; plus the final lease-return message": (
        lambda _: f"{LIMIT}\n\nFinal run error:\n{MESSAGE}"
    ),
    "Retry policy: <engine reason>, then the final run error text when there is any": (
        lambda _: (
            f"Retry policy: {NO_RETRIES}\n\nFinal run error:\n{MESSAGE}\nmain exited with code {EXIT_CODE}: exit"
        )
    ),
    "Lease expired and not retried by policy: <engine reason>": (
        lambda _: f"Lease expired and not retried by policy: {NO_RETRIES}"
    ),
    "preemption reason": lambda _: MESSAGE,
    "message": lambda _: MESSAGE,
    "submission check reason": lambda ending: ending.seen["job_error"],
    "empty text": lambda _: "",
}
CATEGORIES: Mapping[str, tuple[str, str] | None] = {
    "from the error": CATEGORY,
    "category of the failed run": CATEGORY,
    "not carried to clients": None,
    "empty": ("", ""),
    **{f"{INTERNAL} / {name}": (INTERNAL, name) for name in InternalSubcategory},
}
SEEN: Mapping[str, Callable[[Ending], Any]] = {
    "pod error message": lambda _: MESSAGE,
    "first non-zero container exit code, else 0": lambda _: EXIT_CODE,
    "message": lambda ending: ending.payload.get("reason", MESSAGE),
    "Lease expired": lambda _: "Lease expired",
}
STATES = {"queued after the requeue": "queued", "unchanged (failed)": "failed",
          "unchanged (lease_returned)": "lease_returned"}  # fmt: skip


@pytest.mark.parametrize("case", cases("client_events.json", "rows", expected_keys=EXPECTED))
def test_a_failure_reaches_clients_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("internal_error_kind", "emitted_by"), EXPECTED)
    ending = ENDINGS[case.id]()
    assert ending.run_event == RUN_EVENTS[case.expect["run_level_client_event"]], case.because
    assert ending.job_event == JOB_EVENTS[case.expect["job_level_client_event"]]
    assert ending.payload.get("reason") == REASONS[case.expect["reason"]](ending)
    assert _category(ending) == CATEGORIES[case.expect["failure_category"]]
    assert _fields(ending) == _named(case.expect["extra_client_fields"], decided=False), case.because
    if ending.seen:
        listed = case.expect["lookout"]
        assert {name: ending.seen[name] for name in listed} == _seen(listed, ending)


@pytest.mark.parametrize("case", cases("client_events.json", "rows", expected_keys=EXPECTED))
def test_where_a_policy_decided_its_name_is_added(case: Case) -> None:
    if not any(WHEN_DECIDED in field for field in case.expect["extra_client_fields"]):
        return
    ending = ENDINGS[case.id]("Retry")
    assert ending.payload["retryPolicyName"] == "p1"
    assert _fields(ending) == _named(case.expect["extra_client_fields"], decided=True)


def _category(ending: Ending) -> tuple[str, str] | None:
    told = ending.payload
    return (told["failureCategory"], told["failureSubcategory"]) if told else None


def _fields(ending: Ending) -> frozenset[str]:
    """What is told beyond what every failure tells; of the run's own event where the job has none."""
    return frozenset(ending.payload) - EVERY_FAILED_EVENT if ending.payload else ending.run_fields


def _named(fields: Sequence[str], *, decided: bool) -> frozenset[str]:
    """The names of fields that are listed with remarks or values."""
    wanted = [field for field in fields if decided or WHEN_DECIDED not in field]
    return frozenset(re.split(r"[ =]", field)[0] for field in wanted)


def _seen(listed: Mapping[str, str], ending: Ending) -> dict[str, Any]:
    """What pages must show: states by their names, and the rest by what stands for it."""
    return {
        name: STATES.get(text, text) if name.endswith("_state") else SEEN[text](ending)
        for name, text in listed.items()
    }


@pytest.mark.parametrize("case", cases("client_events.json", "event_catalogue", expected_keys=("fields",)))
def test_an_event_has_the_fields_that_are_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("event", "message"), ("fields",))
    if case.id in NEVER_TOLD:
        assert case.id not in set(EventKind)
        return
    listed = case.expect["fields"]
    without_remarks = {field for field in listed if " (" not in field}
    told = _told_in_lives(case.id)
    assert without_remarks <= told <= {field.split(" (")[0] for field in listed}


def test_the_vocabulary_is_the_recorded_one() -> None:
    document = json.loads((DATA / "client_events.json").read_text(encoding="utf-8"))
    assert document["kubernetes_reason_to_cause"] == CAUSES
    ours = {*document["internal_category_subcategories"], InternalSubcategory.NODE_FAILURE}
    assert set(InternalSubcategory) == ours
    failed = pod_error().payload
    assert set(failed["containerStatuses"][0]) == set(document["container_status_fields"])


def _told_in_lives(kind: str) -> set[str]:
    """Every field that events of the kind have in the lives that are written down."""
    lines = [line for path in LIVES.glob("*.jsonl") for line in path.read_text().splitlines()]
    events = [json.loads(line) for line in lines]
    return {field for event in events if kind in event for field in event[kind]}
