"""Groups, heat-maps and statistics over REST and by the client."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from lookout.access import ensure_person, issue_token
from lookout.client import Client
from scheduler.actors import Role
from scheduler.models import Run
from scheduler.models.clock import database_now
from scheduler.states import RunState
from tests.api.caller import Caller, caller
from tests.factories import make_job, make_run
from tests.scheduler.pasts import close_hours, decision_of, make_past

HOUR = timedelta(hours=1)


@pytest.fixture
def bob(db: None) -> Caller:
    return caller("bob", Role.READER)


def make_story() -> Run:
    """A job that ran out of memory, was retried and succeeded; and one that failed for good."""
    now = database_now()
    job = make_job(annotations={"team": "red"})
    run = make_run(
        job,
        state=RunState.FAILED,
        node="gpu-1",
        recorded_at=now - HOUR,
        core_seconds=7_200.0,
        fingerprint="ab",
    )
    decision_of(run, "retry", at=now).save()
    make_run(job, state=RunState.SUCCEEDED, node="gpu-2", recorded_at=now)
    other = make_run(
        make_job("daily"), state=RunState.FAILED, node="gpu-1", category="disk", fingerprint="cd"
    )
    decision_of(other, "fail_default", at=now).save()
    return run


def test_groups_of_jobs_have_keys_states_and_times(bob: Caller) -> None:
    make_story()
    body = bob.get("v1/jobs/groups", {"by": "queue,annotation.team"}).body
    assert body["more"] is False
    assert [group["keys"] for group in body["groups"]] == [
        {"queue": "daily", "annotation.team": None},
        {"queue": "nightly", "annotation.team": "red"},
    ]
    assert set(body["groups"][0]) == {
        "keys", "jobs", "states", "firstSubmittedAt", "lastSubmittedAt", "lastChangedAt", "averageChangedAt",
        "averageSeconds",
    }  # fmt: skip
    (group,) = bob.get("v1/jobs/groups", {"by": "node", "queue": "nightly"}).body["groups"]
    assert (group["keys"], group["jobs"], group["states"]) == ({"node": "gpu-2"}, 1, {"running": 1})


@pytest.mark.parametrize("filters", [{}, {"queue": ["nightly", "daily"]}])
def test_a_heat_map_has_rows_categories_and_the_rest(bob: Caller, filters: dict[str, Any]) -> None:
    make_story()
    body = bob.get("v1/failures/heatmap", {"across": "queue", "limit": 1, **filters}).body
    assert set(body["categories"]) == {"oom", "disk"}
    assert body["rows"] == [
        {"name": "daily", "executor": "", "failures": 1, "coreSeconds": 0.0, "byCategory": {"disk": 1}}
    ]
    assert body["others"] == {"rows": 1, "failures": 1, "coreSeconds": 7_200.0, "byCategory": {"oom": 1}}
    (row,) = bob.get("v1/failures/heatmap", filters).body["rows"]
    assert (row["name"], row["executor"], row["byCategory"]) == ("gpu-1", "local", {"oom": 1, "disk": 1})


def test_hours_are_named_by_their_beginning(bob: Caller) -> None:
    make_story()
    rows = bob.get("v1/failures/heatmap", {"across": "hour"}).body["rows"]
    assert [row["name"][-7:] for row in rows] == [":00:00Z"] * 2
    assert rows[0]["name"] < rows[1]["name"]


def test_failures_alike_come_with_an_example(bob: Caller) -> None:
    run = make_story()
    body = bob.get("v1/failures/groups", {"category": "oom"}).body
    (group,) = body["groups"]
    assert (group["fingerprint"], group["failures"]) == ("ab", 1)
    assert (group["queues"], group["queueCount"]) == ({"nightly": 1}, 1)
    assert (group["nodes"], group["nodeCount"]) == ({"gpu-1": 1}, 1)
    assert group["example"] == {
        "runId": str(run.id), "jobId": run.job_id, "category": "oom", "subcategory": "", "exitCode": 137,
        "message": "Container main failed",
    }  # fmt: skip


def test_days_and_spans(bob: Caller) -> None:
    make_story()
    days = bob.get("v1/failures/days").body["days"]
    assert sum(day["failures"] for day in days) == 2
    assert bob.get("v1/failures/days", {"since": "-10m"}).body["days"][0]["category"] == "disk"
    assert bob.get("v1/failures/days", {"since": "", "until": "2020-01-01"}).body["days"] == []
    assert len(bob.get("v1/failures/days", {"since": "", "category": "oom"}).body["days"]) == 1


@pytest.mark.parametrize("filters", [{}, {"queue": "nightly"}])
def test_an_age_in_days_begins_with_a_whole_day(bob: Caller, filters: dict[str, Any]) -> None:
    day = (database_now() - timedelta(days=7)).replace(hour=0, minute=0, second=0, microsecond=0)
    make_run(make_job(), state=RunState.FAILED, category="oom", recorded_at=day)
    for since, failures in (("-7d", 1), ("-1w", 1), ("-168h", 0)):
        days = bob.get("v1/failures/days", {"since": since, **filters}).body["days"]
        assert sum(each["failures"] for each in days) == failures, since


@pytest.mark.parametrize("filters", [{}, {"queue": ["nightly", "daily"]}])
def test_what_retries_come_to(bob: Caller, filters: dict[str, Any]) -> None:
    make_story()
    assert bob.get("v1/stats/retries", filters).body["rules"] == [
        {
            "policy": "oom-grow", "ruleIndex": 0, "granted": 1, "verdicts": {"retry": 1}, "succeeded": 1,
            "succeededAfter": [{"retries": 1, "jobs": 1}], "failedAgain": 0, "cancelled": 0, "failedCoreHours": 2.0,
        },
        {
            "policy": "oom-grow", "ruleIndex": None, "granted": 0, "verdicts": {"fail_default": 1}, "succeeded": 0,
            "succeededAfter": [], "failedAgain": 0, "cancelled": 0, "failedCoreHours": 0.0,
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("jobs/groups", {}, "by"),
        ("jobs/groups", {"by": "colour"}, "by"),
        ("jobs/groups", {"by": "queue", "limit": "1001"}, "limit"),
        ("jobs/groups", {"by": "queue", "state": "gone"}, "state"),
        ("jobs/groups", {"by": "queue", "cursor": "x"}, "cursor"),
        ("failures/heatmap", {"across": "planet"}, "across"),
        ("failures/heatmap", {"since": "yesterday"}, "since"),
        ("failures/heatmap", {"since": "-1h", "until": "-2h"}, "until"),
        ("failures/days", {"until": "2020-01-01"}, "until"),
        ("failures/groups", {"limit": "0"}, "limit"),
        ("failures/groups", {"until": "9999999999"}, "until"),
        ("failures/groups", {"queue": "a\x00"}, "queue"),
        ("failures/days", {"limit": "5"}, "limit"),
        ("stats/retries", {"verdict": "perhaps"}, "verdict"),
        ("stats/retries", {"since": "-99999999999d"}, "since"),
    ],
)
def test_nonsense_is_refused_by_its_name(bob: Caller, path: str, query: dict[str, Any], field: str) -> None:
    refused = bob.get(f"v1/{path}", query)
    assert refused.status == 400
    assert refused.paths == [field]


@pytest.mark.parametrize(
    "path", ["jobs/groups?by=queue", "failures/heatmap", "failures/groups", "failures/days", "stats/retries"]
)
def test_nobody_reads_without_signing_in(db: None, path: str) -> None:
    assert Caller().get(f"v1/{path}").status == 401


@pytest.mark.django_db(transaction=True)
def test_the_client_reads_all_of_it(live_server: LiveServer) -> None:
    make_past(30, seed=3, jobs=6)
    close_hours(3)
    token = issue_token(ensure_person("bob", role=Role.READER))
    with Client(live_server.url, token=token) as tack:
        groups = tack.job_groups(["queue", "state"])
        assert sum(group.jobs for group in groups.groups) == 6 == len(list(tack.jobs()))
        failures = sum(row.failures for row in tack.failure_heat_map("node").rows)
        assert failures > 0
        assert sum(group.failures for group in tack.failure_groups().groups) == failures
        assert sum(day.failures for day in tack.failure_days()) == failures
        fewer = tack.failure_heat_map("pool", {"queue": "nightly", "category!": ["oom", "disk"]})
        assert sum(row.failures for row in fewer.rows) < failures
        assert sum(rule.granted for rule in tack.retry_statistics()) > 0
