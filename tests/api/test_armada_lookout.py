"""The endpoints of Armada's Lookout: its requests answered in its shapes."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Role
from scheduler.models import Job
from scheduler.states import JobState, RunState
from tests.api.caller import Answer, Caller, caller
from tests.factories import MEBI, make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


def ask(rita: Caller, what: str, body: Any) -> Answer:
    shown = {"Authorization": f"Bearer {rita.token}"} if rita.token else {}
    path, media = f"/lookout/api/v1/{what}", "application/json"
    response: Any = rita.client.post(path, json.dumps(body), content_type=media, headers=shown)
    return Answer(status=response.status_code, body=json.loads(response.content), headers=response.headers)


def listed(rita: Caller, *filters: dict[str, Any], **more: Any) -> list[str]:
    answer = ask(rita, "jobs", {"filters": list(filters), "order": None, **more})
    assert answer.status == 200
    return [job["jobId"] for job in answer.body["jobs"]]


def has(field: str, value: Any, match: str = "exact", **more: Any) -> dict[str, Any]:
    return {"field": field, "value": value, "match": match, **more}


@pytest.fixture
def story() -> Job:
    """Failed, retried with more memory on another node, running."""
    job = make_job(
        annotations={"example.com/c": "c_1"}, priority_class="armada-default", priority=7,
        resources={"nvidia.com/gpu": 2, "ephemeral-storage": 5},
    )  # fmt: skip
    executor = make_executor()
    make_run(job, executor=executor, state=RunState.FAILED, subcategory="limit", message="Killed")
    make_run(job, executor=executor, node="local-2")
    return job


def test_a_job_has_the_shape_of_lookout(rita: Caller, story: Job) -> None:
    (job,) = ask(rita, "jobs", {"filters": [], "order": {"field": "jobId", "direction": "DESC"}}).body["jobs"]
    assert {name: job[name] for name in ("jobId", "queue", "owner", "namespace", "jobSet", "state")} == {
        "jobId": story.id, "queue": "nightly", "owner": "alice", "namespace": "default", "jobSet": "set",
        "state": "RUNNING",
    }  # fmt: skip
    assert [job[name] for name in ("cpu", "memory", "gpu", "ephemeralStorage")] == [100, 64 * MEBI, 2, 5]
    assert (job["node"], job["cluster"], job["pool"], job["priorityClass"]) == (
        "local-2", "local", "default", "armada-default",
    )  # fmt: skip
    assert set(job) & {"exitCode", "cancelled", "cancelUser"} == set()
    first, second = job["runs"]
    assert (first["jobRunState"], first["exitCode"]) == ("RUN_FAILED", 137)
    assert (first["failureCategory"], first["failureSubcategory"]) == ("oom", "limit")
    assert (second["jobRunState"], second["cluster"]) == ("RUN_RUNNING", "local")
    assert "failureCategory" not in second
    assert job["lastActiveRunId"] == second["runId"]


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        (has("jobId", "{id}"), True),
        (has("queue", ["nightly", "x"], "anyOf"), True),
        (has("queue", "night", "startsWith"), True),
        (has("queue", "%", "contains"), False),
        (has("jobSet", "e", "contains"), True),
        (has("state", ["QUEUED", "RUNNING"], "anyOf"), True),
        (has("state", "FAILED"), False),
        (has("cpu", 100), True),
        (has("cpu", 100, "greaterThan"), False),
        (has("memory", 64 * MEBI, "greaterThanOrEqualTo"), True),
        (has("gpu", 3, "lessThan"), True),
        (has("priority", 7, "lessThanOrEqualTo"), True),
        (has("submitted", "2020-01-01T00:00:00Z", "greaterThan"), True),
        (has("cluster", "local"), True),
        (has("node", "local-2"), True),
        (has("node", "local-1"), False),
        (has("pool", ["default"], "anyOf"), True),
        (has("example.com/c", "c_", "startsWith", isAnnotation=True), True),
        (has("example.com/c", "c%", "contains", isAnnotation=True), False),
        ({"field": "example.com/c", "match": "exists", "isAnnotation": True}, True),
        ({"field": "example.com/d", "match": "exists", "isAnnotation": True}, False),
    ],
)
def test_a_filter_of_lookout_means_what_it_means_there(
    rita: Caller, story: Job, wanted: dict[str, Any], meant: bool
) -> None:
    value = story.id if wanted.get("value") == "{id}" else wanted.get("value")
    assert listed(rita, {**wanted, "value": value}) == [story.id] * meant


def test_jobs_come_in_their_order_and_by_the_stretch(rita: Caller) -> None:
    first = make_job("b", job_set="1")
    jobs = [first, *(make_job("a", job_set=str(number)) for number in range(2, 6))]
    newest = [job.id for job in reversed(jobs)]
    assert listed(rita) == listed(rita, take=0) == newest
    assert listed(rita, skip=1, take=2) == newest[1:3]
    assert listed(rita, order={"field": "jobSet", "direction": "ASC"}) == newest[::-1]
    assert listed(rita, order={"field": "queue", "direction": "DESC"})[0] == first.id


def test_active_job_sets_are_those_with_a_job_that_has_not_ended(rita: Caller) -> None:
    make_job(job_set="over", state=JobState.FAILED)
    ended, waiting = make_job(job_set="on", state=JobState.SUCCEEDED), make_job(job_set="on")
    assert set(listed(rita, activeJobSets=True)) == {ended.id, waiting.id}


def test_a_job_asked_to_end_is_shown_and_found_as_running(rita: Caller) -> None:
    job = make_job(state=JobState.CANCELLING)
    make_job(state=JobState.RUNNING)
    assert job.id in listed(rita, has("state", "RUNNING"))
    groups = ask(
        rita,
        "jobGroups",
        {"filters": [], "order": None, "groupedField": {"field": "state"}, "aggregates": []},
    )
    assert groups.body["groups"] == [{"name": "RUNNING", "count": 2, "aggregates": {}}]


def test_groups_have_the_shape_of_lookout(rita: Caller) -> None:
    first = make_job("a", job_set="x", annotations={"team": "one"})
    make_job("a", job_set="x", state=JobState.FAILED, submitted_at=first.submitted_at + timedelta(seconds=2))
    make_job("b", job_set="y")
    body = {
        "filters": [], "order": {"field": "count", "direction": "DESC"}, "aggregates": ["state", "submitted"],
        "groupedField": {"field": "jobSet", "isAnnotation": False}, "skip": 0, "take": 10,
    }  # fmt: skip
    groups = ask(rita, "jobGroups", body).body["groups"]
    assert [(group["name"], group["count"]) for group in groups] == [("x", 2), ("y", 1)]
    assert groups[0]["aggregates"]["state"] == {"QUEUED": 1, "FAILED": 1}
    assert groups[0]["aggregates"]["submitted"] == first.submitted_at.isoformat().replace("+00:00", "Z")
    by_name = ask(rita, "jobGroups", body | {"order": {"field": "jobSet", "direction": "DESC"}, "take": 1})
    assert [group["name"] for group in by_name.body["groups"]] == ["y"]
    by_team = body | {
        "groupedField": {"field": "team", "isAnnotation": True, "lastTransitionTimeAggregate": "latest"}
    }
    (team,) = ask(rita, "jobGroups", by_team | {"aggregates": ["lastTransitionTime"]}).body["groups"]
    assert (team["name"], team["count"]) == ("one", 1)
    assert team["aggregates"]["lastTransitionTime"].endswith("Z")


def test_details_are_asked_for_one_by_one(rita: Caller, story: Job) -> None:
    first, second = story.runs.order_by("number")
    spec = ask(rita, "jobSpec", {"jobId": story.id}).body["job"]
    assert (spec["id"], spec["jobSetId"], spec["podSpec"]["restartPolicy"]) == (story.id, "set", "Never")
    assert ask(rita, "jobError", {"jobId": story.id}).body == {"errorString": ""}
    Job.objects.filter(id=story.id).update(state=JobState.FAILED, ended_at=story.submitted_at)
    assert ask(rita, "jobError", {"jobId": story.id}).body == {"errorString": "Killed"}
    assert ask(rita, "jobRunError", {"runId": str(first.id)}).body == {"errorString": "Killed"}
    assert ask(rita, "jobRunError", {"runId": str(second.id)}).body == {"errorString": ""}
    first.error.containers = [
        {"name": "main", "exitCode": 137, "reason": "OOMKilled", "message": "", "init": False}
    ]
    first.error.warnings = ["Slow."]
    first.error.save()
    told = ask(rita, "jobRunDebugMessage", {"runId": str(first.id)}).body
    assert told == {"errorString": "container main: exit code 137, OOMKilled\nSlow."}
    reason = ask(rita, "jobRunSchedulerTerminationReason", {"runId": str(first.id)}).body
    assert reason == {"schedulerTerminationReason": ""}


@pytest.mark.parametrize(
    ("what", "body", "status", "told"),
    [
        ("jobs", {"filters": [has("colour", "red")]}, 400, "Filters are jobId, queue"),
        ("jobs", {"filters": [has("queue", ["a"])]}, 400, "anyOf takes a list"),
        ("jobs", {"filters": [has("queue", {"a": 1})]}, 400, "Takes text or a number"),
        ("jobs", {"filters": [has("queue", "a", "like")]}, 400, "Takes one of exact"),
        ("jobs", {"filters": [has("cpu", "many")]}, 400, "cpu takes cores"),
        ("jobs", {"filters": [has("queue", "a")] * 101}, 400, "Takes at most 100 items"),
        ("jobs", {"take": 10_001}, 400, "take"),
        ("jobs", {"skip": -1}, 400, "skip"),
        ("jobs", {"order": {"field": "colour", "direction": "ASC"}}, 400, "Jobs are ordered by"),
        ("jobs", [], 400, "Takes an object"),
        ("jobGroups", {"groupedField": {"field": "colour"}}, 400, "Jobs are grouped by"),
        ("jobGroups", {"groupedField": {"field": "queue"}, "aggregates": ["x"]}, 400, "Aggregates are"),
        ("jobSpec", {"jobId": "01m8j53gvqm9s346q3d25vt4f5"}, 404, "There is no job"),
        ("jobRunError", {"runId": "x"}, 404, "There is no run"),
        ("jobRunError", {}, 400, "runId"),
    ],
)
def test_refusals_are_one_sentence(rita: Caller, what: str, body: Any, status: int, told: str) -> None:
    answer = ask(rita, what, body)
    assert answer.status == status
    assert set(answer.body) == {"error"}
    assert told in answer.body["error"]


def test_nobody_reads_without_signing_in() -> None:
    answer = ask(Caller(), "jobs", {})
    assert answer.status == 401
    assert isinstance(answer.body["error"], str)


def test_a_list_takes_the_same_number_of_queries_for_any_number_of_jobs(rita: Caller) -> None:
    make_run()
    with CaptureQueriesContext(connection) as few:
        listed(rita)
    for _ in range(10):
        make_run()
    with CaptureQueriesContext(connection) as many:
        assert len(listed(rita)) == 11
    assert len(many) == len(few)
