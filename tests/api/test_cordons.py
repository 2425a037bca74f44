"""Cordons over REST, and taking executors away."""

from datetime import timedelta

import pytest

from scheduler.actors import Role
from scheduler.models import Change
from scheduler.models.clock import database_now
from tests.api.caller import Caller, caller
from tests.factories import make_executor, make_node, make_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> Caller:
    return caller("olga", Role.OPERATOR)


def test_a_queue_is_closed_and_opened(olga: Caller) -> None:
    make_queue(labels={"team": "night"})
    closed = olga.put("v1/queues/nightly/cordon", {"cordoned": True, "reason": "month end"})
    assert (closed.status, closed.body["cordoned"], closed.body["labels"]) == (200, True, {"team": "night"})
    assert Change.objects.get().note == "month end"
    assert (closed.body["cordonedBy"], closed.body["cordonReason"]) == ("olga", "month end")
    sent_back = olga.put("v1/queues/nightly", closed.body | {"priorityFactor": 2})
    assert (sent_back.status, sent_back.body["cordonReason"]) == (200, "month end")
    opened = olga.put("v1/queues/nightly/cordon", {"cordoned": False}).body
    assert (opened["cordoned"], opened["cordonedBy"], opened["cordonReason"]) == (False, "", "")


def test_an_executor_says_who_closed_it_and_why(olga: Caller) -> None:
    make_executor("local")
    closed = olga.put("v1/executors/local/cordon", {"cordoned": True, "reason": "move"})
    assert closed.status == 200
    said = {name: closed.body[name] for name in ("cordoned", "cordonedBy", "cordonReason")}
    assert said == {"cordoned": True, "cordonedBy": "olga", "cordonReason": "move"}
    again = olga.put("v1/executors/local/cordon", {"cordoned": True, "reason": "another"})
    assert again.body["cordonReason"] == "move"


def test_a_node_is_closed_alone_and_shows_its_taints(olga: Caller) -> None:
    taint = {"key": "gpu", "value": "only", "effect": "NoSchedule"}
    make_node(make_executor("local", nodes=1), name="local-2", taints=[taint])
    closed = olga.put("v1/executors/local/nodes/local-2/cordon", {"cordoned": True})
    assert [node["cordoned"] for node in closed.body["nodes"]] == [False, True]
    assert closed.body["nodes"][1]["taints"] == [taint]
    assert closed.body["cordoned"] is False


def test_what_makes_no_sense_is_refused(olga: Caller) -> None:
    make_executor("local")
    assert olga.put("v1/executors/local/cordon", {}).status == 400
    assert olga.put("v1/executors/local/cordon", {"cordoned": "yes"}).status == 400
    assert olga.put("v1/executors/local/cordon", {"cordoned": True, "reason": "x" * 2_001}).status == 400
    assert olga.put("v1/executors/demo/cordon", {"cordoned": True}).status == 404
    assert olga.put("v1/executors/local/nodes/none/cordon", {"cordoned": True}).status == 404
    assert olga.put("v1/queues/none/cordon", {"cordoned": True}).status == 404


def test_who_may_not_is_not_told_what_is_wrong() -> None:
    alice = caller("alice", Role.SUBMITTER)
    for path in ("queues/none", "executors/none", "executors/none/nodes/none"):
        assert alice.put(f"v1/{path}/cordon", {}).status == 403
    assert alice.delete("v1/executors/none").status == 403


def test_a_silent_executor_is_taken_away_and_one_that_calls_is_not(olga: Caller) -> None:
    make_executor("demo", heartbeat_at=database_now() - timedelta(days=1))
    make_executor("local")
    assert olga.delete("v1/executors/demo").status == 200
    assert olga.delete("v1/executors/demo").status == 200
    refused = olga.delete("v1/executors/local")
    assert refused.status == 409
    assert "Stop it first" in refused.body["error"]["message"]
    assert [each["name"] for each in olga.get("v1/executors").body["executors"]] == ["local"]
