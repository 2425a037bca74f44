"""Lists of Armada's Lookout: each filter and each order means what it means there."""

from datetime import timedelta
from typing import Any

import pytest

from scheduler.actors import Role
from scheduler.models import Job
from scheduler.models.clock import database_now
from scheduler.states import JobState
from tests.api.armada import ask, has, listed, make_story
from tests.api.caller import Caller, caller
from tests.factories import MEBI, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


@pytest.fixture
def story() -> Job:
    return make_story()


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
        (has("owner", "alice"), True),
        (has("owner", "default"), False),
        (has("namespace", "default"), True),
        (has("namespace", "alice"), False),
        (has("priorityClass", "armada-", "startsWith"), True),
        (has("ephemeralStorage", 5), True),
        (has("gpu", 2.0), True),
        (has("memory", 6.7108864e7), True),
        (has("lastTransitionTime", "2020-01-01T00:00:00Z", "lessThan"), True),
        (has("submitted", "2020-01-01T00:00:00Z", "lessThan"), False),
        (has("node", "local"), False),
        (has("cluster", "local-2"), False),
        (has("pool", "local"), False),
        (has("queue", ""), False),
        (has("owner", " alice"), False),
        (has("priorityClass", ""), False),
        (has("example.com/c", "", isAnnotation=True), False),
        (has("example.com/e", "", isAnnotation=True), True),
        (has("owner", "", "contains"), True),
    ],
)
def test_a_filter_of_lookout_means_what_it_means_there(
    rita: Caller, story: Job, wanted: dict[str, Any], meant: bool
) -> None:
    value = story.id if wanted.get("value") == "{id}" else wanted.get("value")
    assert listed(rita, {**wanted, "value": value}) == [story.id] * meant


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ([has("jobSet", "1", "contains"), has("jobSet", "2", "contains")], ["12", "21"]),
        ([has("jobSet", "1", "startsWith"), has("jobSet", "1", "startsWith")], ["1", "12"]),
        ([has("state", ["QUEUED", "FAILED"], "anyOf"), has("state", "FAILED")], ["2"]),
        ([has("state", "QUEUED"), has("state", "FAILED")], []),
        ([has("priority", value, "greaterThanOrEqualTo") for value in (1, 2)], ["12", "21"]),
        ([has("team", "a", "startsWith", isAnnotation=True), has("team", "ab", "startsWith", isAnnotation=True)], ["1"]),
        ([has("cpu", 100), has("cpu", 200)], []),
    ],
)  # fmt: skip
def test_filters_must_all_hold_even_of_one_field(
    rita: Caller, wanted: list[dict[str, Any]], meant: list[str]
) -> None:
    teams = {"1": "abc", "2": "a", "12": "", "21": "b"}
    ids = {
        name: make_job(
            job_set=name, priority=number, annotations={"team": teams[name]},
            state=JobState.FAILED if name == "2" else JobState.QUEUED,
        ).id
        for number, name in enumerate(teams)
    }  # fmt: skip
    assert sorted(listed(rita, *wanted)) == sorted(ids[name] for name in meant)
    body = {"filters": wanted, "groupedField": {"field": "jobSet"}, "order": None}
    assert {group["name"] for group in ask(rita, "jobGroups", body).body["groups"]} == set(meant)


def test_active_job_sets_are_those_with_a_job_that_has_not_ended(rita: Caller) -> None:
    make_job(job_set="over", state=JobState.FAILED)
    ended, waiting = make_job(job_set="on", state=JobState.SUCCEEDED), make_job(job_set="on")
    assert set(listed(rita, activeJobSets=True)) == {ended.id, waiting.id}


def test_jobs_come_in_their_order_and_by_the_stretch(rita: Caller) -> None:
    first = make_job("b", job_set="1")
    jobs = [first, *(make_job("a", job_set=str(number)) for number in range(2, 6))]
    newest = [job.id for job in reversed(jobs)]
    assert listed(rita) == listed(rita, take=0) == newest
    assert listed(rita, skip=1, take=2) == newest[1:3]
    assert listed(rita, order={"field": "jobSet", "direction": "ASC"}) == newest[::-1]
    assert listed(rita, order={"field": "queue", "direction": "DESC"})[0] == first.id


@pytest.mark.parametrize("field", ["jobId", "jobSet", "submitted", "lastTransitionTime", "queue", "state"])
def test_each_order_is_that_of_its_field(rita: Caller, field: str) -> None:
    """Each field orders three jobs in a way of its own."""
    now = database_now()
    orders = {
        "jobSet": "bca",
        "submitted": "acb",
        "lastTransitionTime": "cba",
        "queue": "cab",
        "state": "bac",
    }
    places = {name: {letter: order.index(letter) for letter in "abc"} for name, order in orders.items()}
    states = (JobState.CANCELLED, JobState.FAILED, JobState.QUEUED)
    jobs = {
        letter: make_job(
            f"queue-{places['queue'][letter]}", job_set=str(places["jobSet"][letter]),
            state=states[places["state"][letter]],
            submitted_at=now + timedelta(minutes=places["submitted"][letter]),
        )
        for letter in "abc"
    }  # fmt: skip
    for letter, job in jobs.items():
        changed = now + timedelta(minutes=places["lastTransitionTime"][letter])
        Job.objects.filter(id=job.id).update(state_changed_at=changed)
    expected = [jobs[letter].id for letter in orders.get(field, "")] or sorted(
        job.id for job in jobs.values()
    )
    assert listed(rita, order={"field": field, "direction": "ASC"}) == expected
    assert listed(rita, order={"field": field, "direction": "DESC"}) == expected[::-1]
