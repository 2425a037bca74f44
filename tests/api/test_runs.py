"""Runs, their output, and decisions over REST."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.wording import undecided_sentence
from scheduler.actors import Role
from scheduler.models import Run, RunOutput
from scheduler.states import RunState
from tests.api.caller import Caller, caller
from tests.api.deciding import decide
from tests.factories import make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob() -> Caller:
    return caller("bob", Role.READER)


@pytest.fixture
def failed() -> Run:
    return make_run(make_job(), executor=make_executor(), state=RunState.FAILED, message="Killed")


def test_a_run_says_how_it_went(bob: Caller, failed: Run) -> None:
    view = bob.get(f"v1/runs/{failed.id}").body
    assert set(view) == {
        "runId", "jobId", "queue", "jobSetId", "number", "executor", "node", "pool", "state", "leasedAt", "pendingAt",
        "startedAt", "endedAt", "exitCode", "signal", "category", "subcategory", "fingerprint", "coreSeconds", "retryable", "memoryRequestBytes", "memoryLimitBytes",
        "memoryPeakBytes", "killedBy", "enforcedBy", "error", "undecidedBecause", "undecidedSentence", "decision",
    }  # fmt: skip
    assert (view["runId"], view["jobId"], view["executor"]) == (str(failed.id), failed.job_id, "local")
    assert (view["state"], view["retryable"], view["decision"]) == ("failed", None, None)
    assert view["error"] == {"message": "Killed", "reason": "OOM", "containers": [], "warnings": []}


def test_why_no_policy_decided_is_told_as_the_page_tells_it(bob: Caller, failed: Run) -> None:
    assert bob.get(f"v1/runs/{failed.id}").body["undecidedSentence"] == ""
    Run.objects.update(undecided_because="no_policy")
    view = bob.get(f"v1/runs/{failed.id}").body
    assert view["undecidedSentence"] == undecided_sentence("no_policy")


def test_the_runs_of_a_job_are_oldest_first(bob: Caller, failed: Run) -> None:
    make_run(failed.job)
    runs = bob.get("v1/runs", {"job": failed.job_id}).body["runs"]
    assert [run["number"] for run in runs] == [1, 2]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("runs?job=none", 400),
        ("runs?colour=red", 400),
        ("runs?sort=queue,node,pool", 400),
        ("decisions?node.any=a", 400),
        ("runs/none", 404),
        ("runs/00000000-0000-0000-0000-000000000000", 404),
        ("runs/none/output", 404),
        ("decisions?job=none", 400),
        ("decisions?verdict=maybe", 400),
        ("decisions?limit=0", 400),
        ("decisions?cursor=x", 400),
    ],
)
def test_what_does_not_exist_or_makes_no_sense_is_refused(bob: Caller, path: str, status: int) -> None:
    answer = bob.get(f"v1/{path}")
    assert (answer.status, answer.error["code"]) == (status, "invalid" if status == 400 else "not_found")


def test_output_is_text_with_a_line_for_what_is_missing(bob: Caller, failed: Run) -> None:
    RunOutput.objects.create(run=failed, head=b"<script>\xff", tail=b"end", dropped_bytes=12_345)
    answer = bob.get(f"v1/runs/{failed.id}/output")
    assert answer.body == "<script>\ufffd\n[12,345 bytes were not kept]\nend"
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


def test_a_run_without_kept_output_says_so(bob: Caller, failed: Run) -> None:
    answer = bob.get(f"v1/runs/{failed.id}/output")
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_decisions_are_newest_first_and_filtered(bob: Caller, failed: Run) -> None:
    first = decide(failed)
    second = decide(make_run(make_job(), state=RunState.FAILED), verdict="fail_default", rule_index=None)
    listed = bob.get("v1/decisions").body
    assert [view["runId"] for view in listed["decisions"]] == [str(second.run_id), str(first.run_id)]
    view = listed["decisions"][1]
    assert set(view) == {
        "runId", "jobId", "policy", "version", "ruleIndex", "verdict", "reason", "sentence", "policyBudget",
        "globalBudget", "memoryFromBytes", "memoryToBytes", "avoidsNodes", "decidedAt",
    }  # fmt: skip
    assert "memory 64Mi → 128Mi" in view["sentence"]
    for query in ({"verdict": "retry"}, {"job": failed.job_id}, {"policy": "oom-grow", "verdict": "retry"}):
        assert bob.get("v1/decisions", query).body["decisions"] == [view]
    either = bob.get("v1/decisions?verdict=retry&verdict=fail_default").body["decisions"]
    assert either == listed["decisions"]
    assert bob.get("v1/decisions", {"policy": "none"}).body == {"decisions": [], "next": None}
    page = bob.get("v1/decisions", {"limit": "1"}).body
    assert bob.get("v1/decisions", {"limit": "1", "cursor": page["next"]}).body["decisions"] == [view]


def test_decisions_take_the_same_number_of_queries_for_any_number_of_them(bob: Caller, failed: Run) -> None:
    decide(failed)
    with CaptureQueriesContext(connection) as few:
        bob.get("v1/decisions")
    for _ in range(20):
        decide(make_run(make_job(), state=RunState.FAILED))
    with CaptureQueriesContext(connection) as many:
        assert len(bob.get("v1/decisions").body["decisions"]) == 21
    assert len(many) == len(few)
