"""What the lists of jobs, runs and decisions have in common: order, chosen fields, totals, tags."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lookout.api.v1.openapi import openapi
from scheduler.actors import Role
from scheduler.filters import DECISIONS, JOBS, RUNS, Grammar
from scheduler.models import Job, Run
from scheduler.queries.counting import total_of
from scheduler.states import RunState
from tests.api.caller import Caller, caller
from tests.factories import make_executor, make_job, make_run
from tests.scheduler.history_rows import make_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


def test_a_list_is_in_the_order_that_is_asked_for(rita: Caller) -> None:
    low, high = make_job("b", priority=1), make_job("a", priority=2)
    for sort, expected in (
        ("priority", [low, high]),
        ("-priority", [high, low]),
        ("queue,-submitted", [high, low]),
    ):
        found = rita.get("v1/jobs", {"sort": sort}).body["jobs"]
        assert [job["jobId"] for job in found] == [job.id for job in expected]


def test_runs_come_newest_first_and_those_of_one_job_oldest_first(rita: Caller) -> None:
    job = make_job()
    runs = [make_run(job, executor=make_executor(), state=RunState.FAILED), make_run(job)]
    assert [run["number"] for run in rita.get("v1/runs").body["runs"]] == [2, 1]
    assert [run["number"] for run in rita.get("v1/runs", {"job": job.id}).body["runs"]] == [1, 2]
    assert rita.get("v1/runs", {"job": job.id}).body["runs"][0]["jobSetId"] == "set"
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("path", "fields"), [("jobs", "state,jobId"), ("runs", "runId,error"), ("decisions", "verdict")]
)
def test_only_the_fields_that_were_chosen_are_answered(rita: Caller, path: str, fields: str) -> None:
    make_history()
    found = rita.get(f"v1/{path}", {"fields": fields}).body[path]
    assert found
    assert all(list(each) == fields.split(",") for each in found)


def test_a_total_is_there_when_it_was_asked_for(rita: Caller) -> None:
    make_history()
    assert "total" not in rita.get("v1/jobs").body
    asked = {"count": "true", "limit": "1", "queue": "nightly"}
    assert rita.get("v1/jobs", asked).body["total"] == {"count": 7, "exact": True}
    runs = rita.get("v1/runs", {"count": "yes"}).body
    assert runs["total"] == {"count": len(runs["runs"]), "exact": True}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"limit": "0"}, "Takes a whole number from 1 to 1,000."),
        ({"limit": "-1"}, "Takes a whole number from 1 to 1,000."),
        ({"limit": "5000"}, "Takes a whole number from 1 to 1,000."),
        ({"count": "perhaps"}, "Takes true or false, not text."),
        ({"fields": "id"}, "Did you mean jobId?"),
        ({"fields": "jobid"}, "Did you mean jobId?"),
        ({"fields": "lastRun.exitCode"}, "takes whole fields: write lastRun, not 'lastRun.exitCode'."),
    ],
)
def test_what_is_asked_beside_filters_is_told_where_it_is_none(
    rita: Caller, asked: dict[str, str], message: str
) -> None:
    (problem,) = rita.get("v1/jobs", asked).body["error"]["problems"]
    assert problem["path"] in asked
    assert problem["message"].endswith(message)


@pytest.mark.parametrize("path", ["jobs", "runs", "decisions"])
def test_a_total_beyond_the_bound_says_that_it_is_estimated(
    rita: Caller, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    make_history()
    monkeypatch.setattr(total_of, "__kwdefaults__", {"bound": 5})
    total = rita.get(f"v1/{path}", {"count": "true", "limit": "1"}).body["total"]
    assert total["exact"] is False
    assert total["count"] > 5


@pytest.mark.parametrize("path", ["jobs", "runs"])
def test_a_single_thing_has_a_tag_that_changes_with_it(rita: Caller, path: str) -> None:
    run = make_run(make_job(), executor=make_executor())
    address = f"v1/jobs/{run.job_id}" if path == "jobs" else f"v1/runs/{run.id}"
    first = rita.get(address)
    tag = first.headers["ETag"]
    again = rita.get(address, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status, again.body, again.headers["ETag"]) == (304, "", tag)
    Run.objects.update(exit_code=3)
    changed = rita.get(address, headers={"If-None-Match": tag})
    assert changed.status == 200
    assert changed.headers["ETag"] != tag
    assert changed.headers["Cache-Control"] == "private, no-cache"


def test_a_job_alone_takes_the_same_queries_for_any_number_of_runs(rita: Caller) -> None:
    job, executor = make_job(), make_executor()
    make_run(job, executor=executor, state=RunState.FAILED)
    with CaptureQueriesContext(connection) as few:
        rita.get(f"v1/jobs/{job.id}")
    for _ in range(5):
        make_run(Job.objects.get(id=job.id), executor=executor, state=RunState.FAILED)
    with CaptureQueriesContext(connection) as many:
        assert len(rita.get(f"v1/jobs/{job.id}").body["runs"]) == 6
    assert len(many) == len(few)


@pytest.mark.parametrize(
    ("path", "grammar"),
    [("jobs", JOBS), ("runs", RUNS), ("decisions", DECISIONS), ("jobs/export", JOBS), ("runs/export", RUNS)],
)
def test_every_filter_is_described_with_its_comparisons(path: str, grammar: Grammar) -> None:
    described: list[dict[str, Any]] = openapi()["paths"][f"/api/v1/{path}"]["get"]["parameters"]
    names = {each["name"]: each for each in described}
    for field in grammar.fields.values():
        told = names.get(field.shown_name) or names[f"{field.shown_name}>"]
        assert field.told[1:] in told["description"]
        assert all(f"`{sign}`" in told["description"] for sign in field.signs if not field.is_search)
        assert told["schema"]["x-comparisons"].split() == list(field.signs)
    assert {"sort", "fields", "cursor"} <= set(names)
    assert json.dumps(described).count('"example"') > 10
