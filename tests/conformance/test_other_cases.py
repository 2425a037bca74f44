"""The runner of scenarios.json takes other cases of the same shape: some that stand in no file, made from those that do."""

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.conformance.cases import DATA, read_case
from tests.conformance.test_scenarios import test_what_follows_is_as_recorded as run_case

pytestmark = pytest.mark.django_db

ROWS = {row["id"]: row for row in json.loads((DATA / "scenarios.json").read_text())["scenarios"]}
NOTHING: dict[str, Any] = {
    "scheduler_events": [],
    "client_events": [],
    "job_state_after": "running",
    "decision_metric": None,
    "gang_skip_metric_policy": None,
}


def like(row: str, **changed: Any) -> dict[str, Any]:
    """A recorded case with other keys. What it expects is given, so Tack's own expectation goes."""
    found = {**deepcopy(ROWS[row]), **changed}
    found.pop("tack", None)
    return found


def without_an_answer(*answers: str) -> dict[str, Any]:
    """A job that would grow and move, whose check ends in an error."""
    return like(
        "scenario-044",
        schedulability_probe={"answers": list(answers), "calls": len(answers)},
        expect={**NOTHING, "cycle_error": "the check failed"},
    )


def refused(row: str, kind: str, message: str, **changed: Any) -> dict[str, Any]:
    """A failure that ends the job as unschedulable."""
    found = like(row, **changed)
    told = {"failure_category": "app-error", "failure_subcategory": "", "retry_policy_name": "p1"}
    text = f"Retry policy: {message}\n\nFinal run error:\npod failed\nmain exited with code 42: exit"
    found["expect"] = {
        "scheduler_events": [
            {"type": "JobErrors", "terminal": True, "reason_kind": kind, "message": text} | told
        ],
        "client_events": [{"type": "failed", "retryable": False, "reason": text}],
        "job_state_after": "failed",
        "decision_metric": {"policy": "p1", "decision": "retry_unschedulable"},
        "gang_skip_metric_policy": None,
    }
    return found


def grown_by_a_fixed_amount() -> dict[str, Any]:
    found = like("scenario-044")
    found["policies"][0]["rules"][0]["mutate"]["resources"]["memory"] = {"static": "512Mi"}
    for event in found["expect"]["scheduler_events"]:
        if event["type"] == "JobRequeued":
            event["memory_bytes"] = (1024 + 512) << 20
            event["memory_record"] = {"memory_factor": 0.0, "memory_static": "512Mi"}
    return found


def member_of_a_gang() -> dict[str, Any]:
    found = like("scenario-001", config=ROWS["scenario-020"]["config"])
    found["queue_retry_policies"], found["policies"] = ["p1"], ROWS["scenario-020"]["policies"]
    found["job"]["gang_cardinality"] = 3
    found["expect"]["gang_skip_metric_policy"] = "p1"
    return found


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(without_an_answer("error"), id="the first check fails: nobody decides"),
        pytest.param(without_an_answer("fits", "error"), id="the second check fails: nobody decides"),
        pytest.param(
            refused(
                "scenario-044",
                "max_runs_exceeded",
                "retry granted, but no untried node fits the job",
                schedulability_probe={"answers": ["fits", "no_answer"], "calls": 2},
            ),
            id="the second check has no answer in time: no fit",
        ),
        pytest.param(grown_by_a_fixed_amount(), id="memory grows by a fixed amount"),
        pytest.param(member_of_a_gang(), id="a member of a gang fails as it always did"),
    ],
)
def test_a_case_that_stands_in_no_file_is_run(row: dict[str, Any]) -> None:
    run_case(read_case(row))


def test_a_stimulus_nobody_knows_is_an_error() -> None:
    row = like("scenario-001", stimulus={"kind": "struck_by_lightning"})
    with pytest.raises(KeyError, match="struck_by_lightning"):
        run_case(read_case(row))


def test_a_key_nobody_reads_is_an_error() -> None:
    row = like("scenario-001", moon="full")
    with pytest.raises(KeyError, match="moon"):
        run_case(read_case(row))
