"""Groups of Armada's Lookout: each by its field, with the times that are asked for."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.actors import Role
from scheduler.models import Job
from scheduler.models.clock import database_now
from scheduler.states import JobState
from tests.api.armada import ask, has, listed
from tests.api.caller import Caller, caller
from tests.factories import make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


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


def test_groups_by_an_annotation_that_is_called_like_an_order_come_largest_first(rita: Caller) -> None:
    for value in ("a", "a", "b", "c", "c", "c"):
        make_job(annotations={"count": value})
    body: dict[str, Any] = {
        "filters": [],
        "order": None,
        "aggregates": [],
        "groupedField": {"field": "count", "isAnnotation": True},
    }
    groups = ask(rita, "jobGroups", body).body["groups"]
    assert [group["name"] for group in groups] == ["c", "a", "b"]


@pytest.fixture
def three_placed() -> datetime:
    """Three jobs that went different ways, two of them to one place; each pair shares something else."""
    now = database_now().replace(microsecond=0)
    east, west = make_executor("east", nodes=0), make_executor("west", nodes=0)
    places = [
        ("q1", "dev", east, "n1", "cpu"),
        ("q1", "dev", east, "n2", "gpu"),
        ("q2", "live", west, "n2", "cpu"),
    ]
    for number, (queue, namespace, executor, node, pool) in enumerate(places):
        run = make_run(make_job(queue, namespace=namespace), executor=executor, node=node, pool=pool)
        changed = now + timedelta(minutes=(0, 1, 5)[number])
        Job.objects.filter(id=run.job_id).update(
            state_changed_at=changed, submitted_at=now - timedelta(hours=number),
            last_executor=executor.name, last_node=node, last_pool=pool,
        )  # fmt: skip
    return now


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("queue", {"q1": 2, "q2": 1}),
        ("namespace", {"dev": 2, "live": 1}),
        ("cluster", {"east": 2, "west": 1}),
        ("node", {"n1": 1, "n2": 2}),
        ("pool", {"cpu": 2, "gpu": 1}),
        ("state", {"RUNNING": 3}),
    ],
)
def test_each_group_is_that_of_its_field(
    rita: Caller, three_placed: datetime, field: str, expected: dict[str, int]
) -> None:
    groups = ask(rita, "jobGroups", {"groupedField": {"field": field}}).body["groups"]
    assert {group["name"]: group["count"] for group in groups} == expected


@pytest.mark.parametrize("field", ["state", "queue", "namespace"])
@pytest.mark.parametrize(
    ("wanted", "minutes"), [("earliest", (0, 5)), ("latest", (1, 5)), ("average", (0.5, 5)), (None, (0.5, 5))]
)
def test_the_time_of_a_group_is_the_one_that_is_asked_for(
    rita: Caller, three_placed: datetime, field: str, wanted: str | None, minutes: tuple[float, float]
) -> None:
    body = {
        "groupedField": {"field": field, "lastTransitionTimeAggregate": wanted},
        "aggregates": ["lastTransitionTime", "submitted"],
        "order": {"field": "lastTransitionTime", "direction": "ASC"},
    }  # fmt: skip
    groups = [group["aggregates"] for group in ask(rita, "jobGroups", body).body["groups"]]
    if field == "state":
        minutes = ({"earliest": 0, "latest": 5}.get(wanted or "", 2),) * 2
    times = [three_placed + timedelta(minutes=each) for each in minutes[: len(groups)]]
    assert [datetime.fromisoformat(group["lastTransitionTime"]) for group in groups] == times
    submitted = [2] if field == "state" else [1, 2]
    assert [datetime.fromisoformat(group["submitted"]) for group in groups] == [
        three_placed - timedelta(hours=hours) for hours in submitted
    ]


def test_states_that_are_one_there_have_their_times_together(rita: Caller) -> None:
    now = database_now().replace(microsecond=0)
    for minute, state in ((4, JobState.RUNNING), (1, JobState.CANCELLING), (10, JobState.CANCELLING)):
        job = make_job(state=state)
        Job.objects.filter(id=job.id).update(state_changed_at=now + timedelta(minutes=minute))
    for wanted, minute in {"earliest": 1, "average": 5, "latest": 10}.items():
        body = {
            "groupedField": {"field": "state", "lastTransitionTimeAggregate": wanted},
            "aggregates": ["lastTransitionTime"],
        }
        (group,) = ask(rita, "jobGroups", body).body["groups"]
        told = datetime.fromisoformat(group["aggregates"]["lastTransitionTime"])
        assert told == now + timedelta(minutes=minute)
