"""failed_pod_flow.json: what becomes of a failed run, and what is told of it, by the agent's own judgement."""

from typing import Any

import pytest

from policies.category_documents import parse_categories
from policies.failed_checks import parse_failed_checks
from policies.failures import Signals
from scheduler.agent.judging import Intent, Judge, Order
from scheduler.executors.protocol import Observation, Report, ReportState, RunPhase
from tests.conformance.cases import Case, cases
from tests.conformance.pods import container_ends, known, pod_events

GIVEN = ("categorizer", "failed_pod_checks", "pod", "pod_events", "pod_events_available")
EXPECTED = (
    *("path", "reported_kind", "failure_category", "failure_subcategory", "message", "kubernetes_reason"),
    "run_attempted",
)
PATHS = {
    (Order.DELETE_THEN_REPORT, ReportState.FAILED): "delete_then_report",
    (Order.DELETE_THEN_REPORT, ReportState.LEASE_RETURNED): "delete_then_return_lease",
    (Order.REPORT_AND_RETAIN, ReportState.FAILED): "report_and_retain",
}


@pytest.mark.parametrize("case", cases("failed_pod_flow.json"))
def test_a_failed_run_is_removed_or_kept_and_told_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(GIVEN, EXPECTED)
    judge = Judge(
        categories=parse_categories(case.given["categorizer"]),
        failed_checks=parse_failed_checks(case.given["failed_pod_checks"]),
    )
    report, order = judge.judge("r1", _observed(case.given), Intent.NONE)
    case.check(_told(report, order))


def _observed(given: Any) -> Observation:
    pod = given["pod"]
    known(pod, ("phase", "reason", "message", "containers", "initContainers"))
    assert pod["phase"] == "Failed"
    signals = Signals(
        containers=container_ends(pod),
        message=pod["message"],
        reason=pod["reason"],
        events=pod_events(given["pod_events"]) if given["pod_events_available"] else (),
    )
    return Observation(run_id="r1", phase=RunPhase.FAILED, signals=signals)


def _told(report: Report, order: Order) -> dict[str, Any]:
    told = {
        "path": PATHS[order, report.state],
        "failure_category": report.category,
        "failure_subcategory": report.subcategory,
        "message": report.message,
    }
    if report.state is ReportState.LEASE_RETURNED:
        return told | {"reported_kind": "pod_lease_returned", "run_attempted": report.attempted}
    return told | {"reported_kind": "pod_error", "kubernetes_reason": report.reason}
