"""Cancel, reprioritise and preempt over REST: by ids, job set, queue, executor and node."""

import json
from typing import Any

import pytest

from lookout import batches
from lookout.api.v1 import cancellation
from scheduler.actors import Role
from scheduler.models import Job
from scheduler.queries import chosen
from scheduler.states import JobState
from tests.api.caller import Caller, caller
from tests.factories import make_executor, make_job, make_queue, make_run

pytestmark = pytest.mark.django_db

PREEMPTIBLE = "armada-preemptible"


@pytest.fixture
def alice() -> Caller:
    """Owns the queues the factories make."""
    return caller("alice", Role.READER)


def test_a_job_set_is_cancelled_by_its_states(alice: Caller) -> None:
    queued = make_job(job_set="a")
    running = make_run(make_job(job_set="a"), executor=make_executor()).job
    make_job(job_set="b"), make_job(job_set="a", state=JobState.FAILED)
    body = {"queue": "nightly", "jobSetId": "a", "states": ["queued"], "reason": "not needed"}
    done = alice.post("v1/jobs/cancel", body)
    assert done.body == {"cancelled": [queued.id], "cancelling": [], "unchanged": [], "more": False}
    assert alice.post("v1/jobs/cancel", {"queue": "nightly", "jobSetId": "a"}).body["cancelling"] == [
        running.id
    ]


def test_all_that_a_filter_means_is_asked_for_and_what_it_may_not_mean_is_named(alice: Caller) -> None:
    executor = make_executor()
    here, there = (make_run(make_job(), executor=executor, node=f"local-{n}").job for n in (1, 2))
    make_queue("his", owners=["bob"])
    make_job("his")
    body = {"filter": "node.last!=local-2&owner=alice"}
    refused = alice.post("v1/jobs/cancel", body)
    assert (refused.status, refused.error["code"]) == (403, "not_permitted")
    assert "Jobs of queue 'his' are meant too" in refused.error["message"]
    done = alice.post("v1/jobs/cancel", {"filter": "node.last!=local-2&executor.any=local"})
    assert done.body["cancelling"] == [here.id]
    done = alice.post("v1/jobs/reprioritize", {"queue": "nightly", "filter": "owner=alice", "priority": 3})
    assert done.body["reprioritized"] == [there.id]


def test_more_jobs_than_one_transaction_takes_are_one_request(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "BATCH", 2)
    ids = {make_job().id for _ in range(5)}
    done = alice.post("v1/jobs/cancel", {"queue": "nightly"})
    assert (set(done.body["cancelled"]), done.body["more"]) == (ids, False)


def test_a_request_that_took_long_enough_says_that_there_is_more(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "BATCH", 2)
    monkeypatch.setattr(cancellation, "until_done", lambda step: batches.until_done(step, patience_seconds=0))
    for _ in range(3):
        make_job()
    answers = [alice.post("v1/jobs/cancel", {"queue": "nightly"}).body for _ in range(2)]
    assert [(len(each["cancelled"]), each["more"]) for each in answers] == [(2, True), (1, False)]


def test_jobs_are_reprioritised_by_id_and_by_queue(alice: Caller) -> None:
    jobs = [make_job(priority=5), make_job(priority=6)]
    done = alice.post("v1/jobs/reprioritize", {"jobIds": [jobs[0].id], "priority": 1})
    assert done.body == {"reprioritized": [jobs[0].id], "unchanged": [], "more": False}
    done = alice.post("v1/jobs/reprioritize", {"queue": "nightly", "priority": 1})
    assert done.body == {"reprioritized": [jobs[1].id], "unchanged": [jobs[0].id], "more": False}
    again = alice.post("v1/jobs/reprioritize", {"queue": "nightly", "priority": 1})
    assert set(again.body["unchanged"]) == {job.id for job in jobs} and not again.body["reprioritized"]
    assert set(Job.objects.values_list("priority", flat=True)) == {1}


def test_jobs_are_preempted_by_id_and_by_node(alice: Caller) -> None:
    executor = make_executor()
    named, here = (
        make_run(make_job(priority_class=PREEMPTIBLE), executor=executor, node=f"local-{n}").job
        for n in (1, 2)
    )
    waits = make_job(priority_class=PREEMPTIBLE)
    done = alice.post("v1/jobs/preempt", {"jobIds": [named.id, waits.id], "reason": "room"})
    assert done.body == {"preempting": [named.id], "unchanged": [waits.id], "more": False}
    view = alice.get(f"v1/jobs/{named.id}").body
    assert (view["preemptUser"], view["preemptReason"]) == ("alice", "room")
    olga = caller("olga", Role.OPERATOR)
    done = olga.post("v1/jobs/preempt", {"executor": "local", "node": "local-2"})
    assert done.body["preempting"] == [here.id]


def test_what_is_not_preemptible_is_refused_where_it_is_named_and_left_alone_elsewhere(alice: Caller) -> None:
    job = make_run(executor=make_executor()).job
    refused = alice.post("v1/jobs/preempt", {"jobIds": [job.id]})
    assert (refused.status, refused.error["code"]) == (409, "conflict")
    assert "not preemptible" in refused.error["message"]
    assert alice.post("v1/jobs/preempt", {"queue": "nightly"}).body["preempting"] == []


BODIES: list[dict[str, Any]] = [
    {},
    {"states": ["queued"]},
    {"jobSetId": "a"},
    {"node": "local-1"},
    {"queue": "nightly", "states": ["failed"]},
    {"queue": "nightly", "jobIds": []},
    {"queue": ["nightly"]},
    {"queue": "nightly", "states": ["queued"] * 5},
    {"queue": "n" * 64},
    {"queue": "nightly\x00"},
    {"queue": "nightly", "nodes": []},
    {"jobIds": "x"},
    {"filter": ""},
    {"filter": "queue="},
    {"filter": "nonsense=1"},
    {"filter": ["queue=nightly"]},
    {"filter": "queue=nightly", "jobIds": []},
    {"filter": f"queue={'n' * 17_000}"},
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("word", ["cancel", "reprioritize", "preempt"])
def test_what_names_no_jobs_is_refused(word: str, body: dict[str, Any]) -> None:
    make_job()
    sent = {**body, "priority": 1} if word == "reprioritize" else body
    refused = caller("olga", Role.OPERATOR).post(f"v1/jobs/{word}", json.dumps(sent))
    assert (refused.status, refused.error["code"]) == (400, "invalid")


@pytest.mark.parametrize("priority", [None, -1, 2**31, 1.5, "1", True])
def test_a_priority_is_a_whole_number_from_0(alice: Caller, priority: object) -> None:
    job = make_job()
    refused = alice.post("v1/jobs/reprioritize", {"jobIds": [job.id], "priority": priority})
    assert (refused.status, refused.paths) == (400, ["priority"])


@pytest.mark.parametrize("word", ["cancel", "reprioritize", "preempt"])
def test_what_does_not_exist_is_not_found(word: str) -> None:
    olga = caller("olga", Role.OPERATOR)
    for named in ({"queue": "none"}, {"executor": "none"}, {"jobIds": ["0" * 26]}):
        body = {**named, "priority": 1} if word == "reprioritize" else named
        assert olga.post(f"v1/jobs/{word}", body).status == 404
