"""pod_issues.json: every problem an executor sees, and what the agent makes of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from policies.category_documents import parse_categories
from policies.failed_checks import FailedChecks, parse_failed_checks
from policies.failures import Signals
from scheduler.agent import lifecycle
from scheduler.agent.judging import Judge, Order
from scheduler.agent.lifecycle import Entry, Limits, Step
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import Observation, Remains, Report, ReportState, RunPhase, Trouble
from tests.conformance.cases import Case, cases

EXPECTED = ("report", "order", "failure_category", "failure_subcategory", "run_attempted", "message_shape")
ENTRY = Entry(run_id="r1", node="n1", pod_name="armada-j1-0")
NOW = Instant(boot="b", seconds=0.0, wall=0.0)
LATER = replace(NOW, seconds=1e6)
DETAIL = "the detail of it"
CATEGORIES = parse_categories(
    {
        "enabled": True,
        "categories": [
            {
                "name": "<categorizer>",
                "action": "Delete",
                "rules": [{"onPodError": {"pattern": DETAIL}, "subcategory": "<categorizer>"}],
            }
        ],
    }
)
NO_CHECKS = FailedChecks()
CHECKS = parse_failed_checks({"podStatuses": [{"regexp": DETAIL}]})


def observed(seen: Observation, checks: FailedChecks = NO_CHECKS) -> Entry:
    judge = Judge(categories=CATEGORIES, failed_checks=checks)
    return lifecycle.end_of(ENTRY, seen, judge, now=NOW)


def troubled(trouble: Trouble) -> Callable[[], Entry]:
    signals = Signals(message=DETAIL)
    return lambda: observed(
        Observation(run_id="r1", phase=RunPhase.PENDING, trouble=trouble, signals=signals)
    )


FAILED = Observation(run_id="r1", phase=RunPhase.FAILED, signals=Signals(message=DETAIL))
ISSUES: Mapping[str, Callable[[], Entry]] = {
    "no node assigned in time": troubled(Trouble.NOT_PLACED),
    "stuck starting up, retryable check": troubled(Trouble.START_DELAYED),
    "stuck starting up, fatal check": troubled(Trouble.START_IMPOSSIBLE),
    "stuck terminating": troubled(Trouble.WILL_NOT_END),
    "past its active deadline": troubled(Trouble.OVERDUE),
    "deleted by someone else": troubled(Trouble.TAKEN_AWAY),
    "started after deletion was requested": troubled(Trouble.STARTED_LATE),
    "failed pod matched by failed pod checks": lambda: observed(FAILED, CHECKS),
    "failed pod in a Delete category": lambda: observed(FAILED),
    "failed pod in a Delete category that cannot be deleted": lambda: observed(FAILED),
    "active run without a pod": troubled(Trouble.VANISHED),
    "submitted run whose pod never appears": troubled(Trouble.NEVER_APPEARED),
    "lease cannot be turned into a pod": lambda: lifecycle.impossible(ENTRY, DETAIL, now=NOW),
    "pod submission refused, recoverable": lambda: lifecycle.without_run(ENTRY, DETAIL, now=NOW),
    "pod submission refused, fatal": lambda: lifecycle.forbidden(ENTRY, DETAIL, now=NOW),
}
KINDS = {ReportState.LEASE_RETURNED: "pod_lease_returned", ReportState.FAILED: "pod_error"}


@pytest.mark.parametrize("case", cases("pod_issues.json", "issues", expected_keys=EXPECTED))
def test_a_problem_is_told_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("detected_when",), EXPECTED)
    entry = ISSUES[case.title]()
    goes = "cannot be deleted" not in case.title
    order, report = _played(entry, goes=goes)
    case.check(_told(order, report, case.expect))


def _played(entry: Entry, *, goes: bool) -> tuple[str, Report | None]:
    """The order of things and the report sent, from the steps the agent takes; `goes`: whether remains can be removed."""
    taken: list[str] = []
    sent: Report | None = None
    remains = Remains(present=True)
    for _ in range(4):
        assert entry.end is not None
        for step in lifecycle.next_steps(entry.end, remains, now=LATER if not goes else NOW, limits=Limits()):
            taken.append(str(step))
            if step is Step.REMOVE:
                remains = Remains(present=not goes)
            elif step is not Step.FORGET:
                sent = lifecycle.due_report(entry, step, now=NOW)
                entry = lifecycle.told(entry)
    return _order(entry, taken), sent


def _order(entry: Entry, taken: list[str]) -> str:
    assert entry.end is not None
    steps = list(dict.fromkeys(taken))
    if entry.end.order is Order.FREE_NAME_AND_REPORT:
        assert steps[:2] == ["remove", "report"]
        return "queue_deletion_by_name_and_report"
    return {
        "remove report forget": "delete_then_report",
        "report remove forget": "report_then_delete",
        "report_stuck remove": "report_and_keep_deleting",
        "report forget": "report_only",
        "forget": "forget_run",
    }[" ".join(steps)]


def _told(order: str, report: Report | None, expect: Mapping[str, Any]) -> dict[str, Any]:
    if report is None:
        return {"report": "none", "order": order, "failure_category": None, "failure_subcategory": None}
    told: dict[str, Any] = {
        "report": KINDS[report.state],
        "order": order,
        "failure_category": report.category,
        "failure_subcategory": report.subcategory,
    }
    if report.state is ReportState.LEASE_RETURNED:
        told["run_attempted"] = report.attempted
    if "message_shape" in expect:
        told["message_shape"] = report.message.replace(DETAIL, "<detail>").replace("\n", "\\n")
    return told
