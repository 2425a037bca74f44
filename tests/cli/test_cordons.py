"""`tack cordon`, `uncordon`, `get executors`, `delete executor`: what is sent, and what people read."""

from typing import Any

from lookout.client import Client
from tests.cli.answers import queue_view
from tests.cli.conftest import Tack
from tests.cli.small_server import TOKEN, SmallServer, refusal


def node(name: str, **changes: Any) -> dict[str, Any]:
    capacity = {"cpuMillicores": 1_500, "memoryBytes": 1 << 30, "resources": {}}
    return {"name": name, "schedulable": True, "cordoned": False, "runs": 2, "capacity": capacity} | changes


def executor(name: str, *nodes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"name": name, "pool": "default", "nodes": list(nodes), "runs": 2, "silent": False} | changes


def test_a_queue_and_an_executor_are_cordoned_with_a_reason(server: SmallServer, tack: Tack) -> None:
    server.on("PUT queues/nightly/cordon", {"name": "nightly", "cordoned": True})
    server.on("PUT executors/local/cordon", executor("local", cordoned=True))
    assert tack("cordon", "queue", "nightly", "--reason", "month end").out == "Cordoned queue nightly\n"
    assert tack("cordon", "executor", "local").out == "Cordoned executor local\n"
    assert [each.body for each in server.asked] == [
        {"cordoned": True, "reason": "month end"},
        {"cordoned": True, "reason": ""},
    ]


def test_queues_are_shown_with_who_cordoned_them_and_why(server: SmallServer, tack: Tack) -> None:
    closed = queue_view("nightly", cordoned=True, cordonedBy="olga", cordonReason="month end")
    server.on("GET queues", {"queues": [closed, queue_view("weekly")]})
    server.on("GET queues/nightly", closed)
    for words in (("get", "queues"), ("get", "queue", "nightly")):
        said = tack(*words)
        assert said.err == "Queue nightly is cordoned by olga: month end\n"
        assert "month end" not in said.out


def test_a_node_is_found_by_its_name(server: SmallServer, tack: Tack) -> None:
    server.on("GET executors", {"executors": [executor("a", node("a-1")), executor("b", node("b-1"))]})
    server.on("PUT executors/b/nodes/b-1/cordon", executor("b"))
    assert tack("uncordon", "node", "b-1").out == "Uncordoned node b-1 of executor b\n"
    assert server.asked[-1].body == {"cordoned": False, "reason": ""}


def test_a_node_that_is_not_alone_or_not_there_is_asked_for(server: SmallServer, tack: Tack) -> None:
    server.on("GET executors", {"executors": [executor("a", node("n")), executor("b", node("n"))]})
    several = tack("cordon", "node", "n")
    assert (several.code, "say which with --executor" in several.err) == (2, True)
    none = tack("cordon", "node", "m")
    assert (none.code, "No executor has a node 'm'" in none.err) == (1, True)
    server.on("PUT executors/a/nodes/n/cordon", executor("a"))
    assert tack("cordon", "node", "n", "--executor", "a").code == 0


def test_executors_are_shown_with_what_takes_no_runs(server: SmallServer, tack: Tack) -> None:
    server.on(
        "GET executors",
        {
            "executors": [
                executor(
                    "a",
                    node("a-1"),
                    node("a-2", cordoned=True, cordonedBy="olga", cordonReason="disk swap"),
                    node("a-3", schedulable=False),
                ),
                executor("b", node("b-1"), cordoned=True, cordonedBy="alice"),
                executor("c", silent=True),
            ]
        },
    )
    lines = [line.split() for line in tack("get", "executors").out.splitlines()]
    assert lines[0] == ["EXECUTOR", "NODE", "STATE", "RUNS", "CPU", "MEMORY", "SEEN", "CORDONED", "BY"]
    assert [line[:3] for line in lines[1:]] == [
        ["a", "a-1", "ready"],
        ["a", "a-2", "cordoned"],
        ["a", "a-3", "closed"],
        ["b", "b-1", "cordoned"],
        ["c", "-", "silent"],
    ]
    assert lines[1][3:6] == ["2", "1.5", "1Gi"]
    assert [line[7:] for line in lines[1:]] == [[], ["olga:", "disk", "swap"], [], ["alice"], []]


def test_without_cordons_nobody_is_named(server: SmallServer, tack: Tack) -> None:
    server.on("GET executors", {"executors": [executor("a", node("a-1"))]})
    assert "CORDONED" not in tack("get", "executors").out


def test_a_fleet_of_nobody_says_so(server: SmallServer, tack: Tack) -> None:
    server.on("GET executors", {"executors": []})
    assert tack("get", "executors").err == "No executor has been heard of yet.\n"


def test_an_executor_is_deleted_or_the_reason_told(server: SmallServer, tack: Tack) -> None:
    server.on("DELETE executors/demo", {})
    assert tack("delete", "executor", "demo").out == "Deleted executor demo (or it did not exist)\n"
    server.on("DELETE executors/local", refusal(409, "conflict", "Executor 'local' still reports."))
    refused = tack("delete", "executor", "local")
    assert (refused.code, refused.err) == (1, "Error: Executor 'local' still reports.\n")


def test_names_are_parts_of_the_address(server: SmallServer) -> None:
    server.on("PUT executors/a/b/nodes/n 1/cordon", executor("a/b"))
    with Client(server.url, token=TOKEN) as client:
        client.cordon_node("a/b", "n 1", reason="disk")
    assert server.asked[0].body == {"cordoned": True, "reason": "disk"}
