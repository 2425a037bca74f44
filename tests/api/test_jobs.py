"""Jobs over REST."""

import json
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Role
from scheduler.models import Event, Job
from scheduler.states import JobState, RunState
from tests.api.caller import Caller, caller
from tests.api.deciding import decide
from tests.factories import POD_SPEC, make_executor, make_job, make_queue, make_run

pytestmark = pytest.mark.django_db

AS_YAML = """\
queue: nightly
jobSetId: a/b
jobs:
  - clientId: one
    podSpec:
      containers:
        - name: main
          image: busybox
          command: [/bin/sh, -c, "true"]
          resources: {limits: {cpu: 100m, memory: 64Mi}}
"""


@pytest.fixture
def alice() -> Caller:
    return caller("alice", Role.READER)


def job_file(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    jobs = items or ({},)
    return {
        "queue": "nightly",
        "jobSetId": "set",
        "jobs": [{"podSpec": POD_SPEC} | job for job in jobs],
        **fields,
    }


def test_jobs_are_submitted_once_per_client_id(alice: Caller) -> None:
    make_queue("nightly")
    first = alice.post("v1/jobs", job_file({"clientId": "one"}, {}))
    assert first.status == 200
    assert [(job["clientId"], job["created"]) for job in first.body["jobs"]] == [("one", True), ("", True)]
    again = alice.post("v1/jobs", job_file({"clientId": "one"}))
    assert again.body["jobs"] == [first.body["jobs"][0] | {"created": False}]
    assert Job.objects.count() == 2


def test_a_job_file_may_be_yaml(alice: Caller) -> None:
    make_queue("nightly")
    done = alice.call("POST", "v1/jobs", body=AS_YAML, content_type="application/yaml")
    assert (done.status, len(done.body["jobs"])) == (200, 1)
    assert Job.objects.get().memory_limit_bytes == 64 << 20


def test_problems_of_a_yaml_job_file_have_their_lines_and_come_in_their_order(alice: Caller) -> None:
    make_queue("nightly")
    text = "queue: nightly\njobs:\n  - podSpec:\n      containers: [{name: A}]\n    priorty: 1\njobSetId: 5\n"
    refused = alice.call("POST", "v1/jobs", body=text, content_type="application/yaml")
    told = [(problem["line"], problem["path"]) for problem in refused.error["problems"]]
    assert told == [(4, "jobs[0].podSpec.containers[0].name"), (5, "jobs[0].priorty"), (6, "jobSetId")]


def test_a_dry_run_tells_fields_that_would_get_the_job_rejected(alice: Caller) -> None:
    make_queue("nightly")
    make_executor(honours=["spec.containers[].name", "spec.containers[].command"])
    spec = {"containers": [{"name": "main", "command": ["true"], "tty": True}]}
    refused = alice.call("POST", "v1/jobs", body=job_file({"podSpec": spec}), query={"dryRun": "true"})
    assert (refused.status, refused.paths) == (400, ["jobs[0].podSpec.containers[0].tty"])
    assert "No executor acts on this" in str(refused.error)


def test_a_dry_run_checks_and_writes_nothing(alice: Caller) -> None:
    make_queue("nightly")
    done = alice.call("POST", "v1/jobs", body=job_file({"clientId": "one"}), query={"dryRun": "true"})
    assert done.body == {"jobs": [{"jobId": "", "clientId": "one", "created": False}]}
    refused = alice.call("POST", "v1/jobs", body=job_file({"podSpec": {}}), query={"dryRun": "true"})
    assert refused.status == 400
    assert Job.objects.count() == 0


def test_every_problem_of_a_job_file_has_its_path(alice: Caller) -> None:
    make_queue("nightly")
    spec: dict[str, Any] = deepcopy(POD_SPEC)
    spec["containers"][0]["resources"]["limits"]["memory"] = "64MB"
    refused = alice.post("v1/jobs", job_file({"podSpec": spec, "prioriti": 1}, jobSetId=""))
    assert refused.status == 400
    assert "jobs[0].podSpec.containers[0].resources.limits.memory" in refused.paths
    assert {"jobs[0].prioriti", "jobSetId"} <= set(refused.paths)
    assert Job.objects.count() == 0


def test_permission_comes_before_validation() -> None:
    make_queue("nightly")
    bob = caller("bob", Role.READER)
    refused = bob.post("v1/jobs", job_file({"podSpec": {}}))
    assert (refused.status, refused.error["code"]) == (403, "not_permitted")
    assert bob.post("v1/jobs", {"jobs": 7}).status == 403
    assert bob.post("v1/jobs", job_file(queue="none")).status in (403, 404)


def test_an_unknown_queue_is_not_found() -> None:
    assert caller("sam", Role.SUBMITTER).post("v1/jobs", job_file()).error["code"] == "not_found"


def test_a_job_in_a_list_says_where_it_stands(alice: Caller) -> None:
    job = make_job(annotations={"a": "b"}, labels={"c": "d"})
    run = make_run(job, executor=make_executor(), state=RunState.FAILED, subcategory="limit")
    decide(run)
    body = alice.get("v1/jobs").body
    assert body["next"] is None
    (view,) = body["jobs"]
    assert set(view) == {
        "jobId", "clientId", "queue", "jobSetId", "owner", "namespace", "priority", "priorityClass", "gangId",
        "state", "stateChangedAt", "submittedAt", "endedAt", "cancelUser", "cancelReason", "preemptUser", "preemptReason", "rejectedBecause", "annotations", "labels",
        "runCount", "resources", "submittedMemoryBytes", "avoidedNodes", "waitingBecause", "lastFailure",
        "lastVerdict", "lastRun",
    }  # fmt: skip
    assert (view["jobId"], view["queue"], view["jobSetId"], view["owner"]) == (
        job.id,
        "nightly",
        "set",
        "alice",
    )
    assert (view["annotations"], view["labels"], view["runCount"]) == ({"a": "b"}, {"c": "d"}, 1)
    assert view["lastFailure"] == {"category": "oom", "subcategory": "limit"}
    assert view["lastVerdict"] == "retry"
    assert view["resources"]["memoryLimitBytes"] == 64 << 20
    assert view["endedAt"] is None
    assert view["submittedAt"].endswith("Z")


def test_jobs_are_found_by_a_part_of_the_job_sets_name(alice: Caller) -> None:
    night, _ = make_job(job_set="night-7"), make_job(job_set="day")
    (view,) = alice.get("v1/jobs?text=HT-").body["jobs"]
    assert view["jobId"] == night.id
    assert alice.get("v1/jobs?text=a&text=b").status == 400


def test_a_rejected_job_failed_of_what_its_event_says(alice: Caller) -> None:
    job = make_job(state=JobState.REJECTED)
    (view,) = alice.get("v1/jobs?category.last=internal").body["jobs"]
    assert view["jobId"] == job.id
    assert view["lastFailure"] == {"category": "internal", "subcategory": "job-rejected"}


def test_a_job_alone_has_its_spec_and_its_runs(alice: Caller) -> None:
    job = make_job()
    executor = make_executor()
    first = make_run(job, executor=executor, state=RunState.FAILED, message="Killed")
    decide(first)
    make_run(job, executor=executor, state=RunState.RUNNING)
    view = alice.get(f"v1/jobs/{job.id.upper()}").body
    assert view["jobId"] == job.id
    assert view["spec"]["containers"][0]["name"] == "main"
    assert [(run["number"], run["state"]) for run in view["runs"]] == [(1, "failed"), (2, "running")]
    failed, running = view["runs"]
    assert (failed["category"], failed["exitCode"], failed["error"]["message"]) == ("oom", 137, "Killed")
    assert failed["retryable"] is True
    assert failed["decision"]["sentence"].startswith("Rule 1 of oom-grow (version 1) matched category oom")
    assert failed["decision"]["policyBudget"] == {
        "before": {"used": 0, "limit": 2},
        "after": {"used": 1, "limit": 2},
    }
    assert running["decision"] is running["error"] is None


@pytest.mark.parametrize("job_id", ["none", "01arz3ndektsv4rrffq69g5fav", "0" * 26, "8" + "0" * 25, "%00"])
def test_an_unknown_job_is_not_found(alice: Caller, job_id: str) -> None:
    assert alice.get(f"v1/jobs/{job_id}").error["code"] == "not_found"


def test_filters_are_those_of_the_address(alice: Caller) -> None:
    wanted = make_job(make_queue("a"), job_set="x/y", state=JobState.FAILED)
    make_run(wanted, executor=make_executor(), state=RunState.FAILED)
    make_job(make_queue("b"))
    for query in (
        {"queue": "a"},
        {"state": ["failed", "cancelled"]},
        {"state": "FAILED"},
        {"id": wanted.id},
        {"jobSet": "x/y"},
        {"category.any": "oom"},
        {"category.last": "oom"},
        {"queue": ["a", "b"], "state": "failed"},
    ):
        assert [job["jobId"] for job in alice.get("v1/jobs", query).body["jobs"]] == [wanted.id], query
    assert alice.get("v1/jobs", {"category.last": "gpu"}).body == {"jobs": [], "next": None}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"queu": "a"}, "queu"),
        ({"state": "done"}, "state"),
        ({"id": "x"}, "id"),
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": ["1", "2"]}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"queue": "\x00"}, "queue"),
        ({"sort": "colour"}, "sort"),
        ({"fields": "jobId,colour"}, "fields"),
        ({"node": "a"}, "node"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(alice: Caller, query: dict[str, Any], path: str) -> None:
    refused = alice.get("v1/jobs", query)
    assert (refused.status, refused.paths) == (400, [path])


def test_pages_follow_each_other_without_gap_while_jobs_come_in(alice: Caller) -> None:
    jobs = [make_job().id for _ in range(5)]
    first = alice.get("v1/jobs", {"limit": "2"}).body
    make_job()
    second = alice.get("v1/jobs", {"limit": "2", "cursor": first["next"]}).body
    third = alice.get("v1/jobs", {"limit": "2", "cursor": second["next"]}).body
    seen = [job["jobId"] for page in (first, second, third) for job in page["jobs"]]
    assert seen == jobs[::-1]
    assert third["next"] is None


def test_jobs_are_cancelled_once(alice: Caller) -> None:
    queued, running = make_job(), make_job()
    make_run(running, executor=make_executor())
    ended = make_job(state=JobState.SUCCEEDED)
    ids = [queued.id, running.id, ended.id]
    done = alice.post("v1/jobs/cancel", {"jobIds": ids, "reason": "not needed"})
    assert done.body == {
        "cancelled": [queued.id],
        "cancelling": [running.id],
        "unchanged": [ended.id],
        "more": False,
    }
    again = alice.post("v1/jobs/cancel", {"jobIds": ids})
    assert again.body["cancelled"] == again.body["cancelling"] == []
    assert alice.get(f"v1/jobs/{queued.id}").body["cancelReason"] == "not needed"


def test_jobs_of_others_are_not_cancelled() -> None:
    job = make_job()
    refused = caller("bob", Role.READER).post("v1/jobs/cancel", {"jobIds": [job.id]})
    assert (refused.status, refused.error["code"]) == (403, "not_permitted")
    job.refresh_from_db()
    assert job.state == "queued"


@pytest.mark.parametrize(
    "body", [{}, {"jobIds": "x"}, {"jobIds": [1]}, {"jobIds": [], "why": ""}, [], "x", None]
)
def test_a_cancellation_of_another_shape_is_refused(alice: Caller, body: object) -> None:
    refused = alice.post("v1/jobs/cancel", json.dumps(body))
    assert (refused.status, refused.error["code"]) == (400, "invalid")


def test_listing_takes_the_same_number_of_queries_for_any_number_of_jobs(alice: Caller) -> None:
    executor = make_executor()
    decide(make_run(make_job(), executor=executor, state=RunState.FAILED))
    make_job()
    with CaptureQueriesContext(connection) as few:
        alice.get("v1/jobs")
    for _ in range(20):
        decide(make_run(make_job(), executor=executor, state=RunState.FAILED))
        make_job()
    with CaptureQueriesContext(connection) as many:
        assert len(alice.get("v1/jobs").body["jobs"]) == 42
    assert len(many) == len(few)


def test_a_job_takes_the_same_number_of_queries_for_any_number_of_runs(alice: Caller) -> None:
    executor = make_executor()
    few_runs, many_runs = make_job(), make_job()
    for job, runs in ((few_runs, 1), (many_runs, 20)):
        for _ in range(runs):
            decide(make_run(job, executor=executor, state=RunState.FAILED))
    with CaptureQueriesContext(connection) as few:
        alice.get(f"v1/jobs/{few_runs.id}")
    with CaptureQueriesContext(connection) as many:
        assert len(alice.get(f"v1/jobs/{many_runs.id}").body["runs"]) == 20
    assert len(many) == len(few)


def test_a_submission_writes_its_events(alice: Caller) -> None:
    make_queue("nightly")
    alice.post("v1/jobs", job_file())
    assert [event.kind for event in Event.objects.order_by("number")] == ["submitted", "queued"]
