"""The endpoints of Armada's Lookout: its requests answered in its shapes."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Role
from scheduler.models import Job, RunError
from scheduler.models.clock import database_now
from scheduler.states import JobState, RunState
from tests.api.armada import ask, has, listed, make_story
from tests.api.caller import Caller, caller
from tests.factories import MEBI, make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


@pytest.fixture
def story() -> Job:
    return make_story()


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


def test_what_ended_a_job_is_told_with_it(rita: Caller) -> None:
    began = database_now() - timedelta(minutes=10)
    job = make_job(state=JobState.CANCELLED, cancel_reason="Too slow.", cancel_user="olga")
    run = make_run(
        job, state=RunState.PREEMPTED, started_at=began, exit_code=9, ended_at=began + timedelta(seconds=75)
    )
    RunError.objects.create(run=run, message="Made room.")
    Job.objects.filter(id=job.id).update(state=JobState.CANCELLED, ended_at=began)
    (told,) = ask(rita, "jobs", {}).body["jobs"]
    assert (told["cancelReason"], told["cancelUser"], told["state"]) == ("Too slow.", "olga", "CANCELLED")
    assert datetime.fromisoformat(told["cancelled"]) == began
    assert (told["runtimeSeconds"], told["exitCode"]) == (75, 9)
    of_run = {"runId": told["lastActiveRunId"]}
    reason = ask(rita, "jobRunSchedulerTerminationReason", of_run).body["schedulerTerminationReason"]
    assert json.loads(reason) == {"preempted": "Made room."}


def test_a_job_that_failed_of_returned_leases_tells_the_error_of_the_last(rita: Caller) -> None:
    job, executor = make_job(), make_executor()
    for message in ("No room.", "No image."):
        run = make_run(job, executor=executor, state=RunState.LEASE_RETURNED)
        RunError.objects.create(run=run, message=message)
    assert ask(rita, "jobError", {"jobId": job.id}).body == {"errorString": ""}
    Job.objects.filter(id=job.id).update(state=JobState.FAILED, ended_at=job.submitted_at)
    assert ask(rita, "jobError", {"jobId": job.id}).body == {"errorString": "No image."}


@pytest.mark.parametrize("path", ["health", "api/v1/version", "api/v2/jobs", ""])
@pytest.mark.parametrize("method", ["get", "post"])
def test_addresses_that_are_not_there_are_refused_in_the_same_shape(path: str, method: str) -> None:
    answer = getattr(Caller().client, method)(f"/lookout/{path}")
    assert answer.status_code == 404
    assert list(answer.json()) == ["error"]
    assert f"/lookout/{path}" in answer.json()["error"]


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
        ("jobs", {"filters": [has("queue", "a")] * 41}, 400, "Takes at most 40 items"),
        ("jobs", {"filters": [has("queue", ["a"] * 101, "anyOf")]}, 200, ""),
        ("jobs", {"filters": [has("queue", list(map(str, range(101))), "anyOf")]}, 400, "at most 100 values"),
        ("jobs", {"filters": [has("queue", [], "anyOf")]}, 400, "anyOf takes at least one value"),
        ("jobs", {"filters": [has("gpu", "")]}, 400, "gpu takes a whole number"),
        ("jobs", {"filters": [has("submitted", "", "lessThan")]}, 400, "submitted takes a time"),
        ("jobs", {"filters": [has("jobId", "01abc")]}, 400, "id takes a job id"),
        ("jobs", {"filters": [has("cpu", "x"), has("state", "gone")]}, 400, "state takes"),
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
    if status != 200:
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
