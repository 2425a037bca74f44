"""Heartbeats: when what an executor says of its nodes has changed, and what is warned of."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.config import Configuration
from scheduler.executors.protocol import Heartbeat, NodeDescription
from scheduler.heartbeats import record_heartbeat
from scheduler.models import Executor, Node

pytestmark = pytest.mark.django_db

HOSTNAME = "kubernetes.io/hostname"
CONFIG = Configuration(node_id_label=HOSTNAME)


def beat(executor: str, *nodes: NodeDescription) -> None:
    heartbeat = Heartbeat(executor=executor, pool="default", version="", agent_time="", nodes=nodes)
    record_heartbeat(heartbeat, config=CONFIG)


def node(name: str, *, labelled: bool = True, memory_bytes: int = 1 << 30) -> NodeDescription:
    labels = {HOSTNAME: name} if labelled else {}
    return NodeDescription(name=name, labels=labels, cpu_millicores=1_000, memory_bytes=memory_bytes)


@pytest.mark.parametrize("offset", ["+16:00", "-23:59", "+00:00"])
def test_a_clock_of_any_offset_is_compared(offset: str) -> None:
    now = datetime.now(datetime.strptime(offset, "%z").tzinfo).isoformat()
    record_heartbeat(
        Heartbeat(executor="local", pool="default", version="", agent_time=now, nodes=()), config=CONFIG
    )
    assert abs(Executor.objects.get().clock_skew_seconds) < 60


@pytest.mark.parametrize("agent_time", ["0001-01-01T00:00:00+16:00", "yesterday", "", "2026-11-29T00:00:00"])
def test_a_time_that_cannot_be_is_no_clock(agent_time: str) -> None:
    heartbeat = Heartbeat(executor="local", pool="default", version="", agent_time=agent_time, nodes=())
    record_heartbeat(heartbeat, config=CONFIG)
    assert Executor.objects.get().clock_skew_seconds == 0


def written(executor: str, *nodes: NodeDescription) -> Sequence[Any]:
    """The names of the nodes that a heartbeat writes."""
    before = dict(Node.objects.values_list("name", "reported_at"))
    beat(executor, *nodes)
    after = Node.objects.order_by("name").values_list("name", "reported_at")
    return [name for name, reported_at in after if reported_at != before.get(name)]


def changed_at(executor: str) -> object:
    return Executor.objects.get(name=executor).nodes_changed_at


def test_the_same_nodes_again_are_no_change() -> None:
    beat("local", node("n1"))
    before = changed_at("local")
    assert before is not None
    beat("local", node("n1"))
    assert changed_at("local") == before


def test_only_nodes_of_which_something_new_is_said_are_written() -> None:
    assert written("local", node("n1"), node("n2")) == ["n1", "n2"]
    heard_at = Executor.objects.get().heartbeat_at
    assert written("local", node("n1"), node("n2")) == []
    assert Executor.objects.get().heartbeat_at != heard_at
    assert written("local", node("n1"), node("n2", labelled=False)) == ["n2"]
    assert written("local", node("n1"), replace(node("n2", labelled=False), notes=["Slow."])) == ["n2"]
    assert Node.objects.get(name="n2").notes == ["Slow."]
    assert written("local", node("n3"), node("n1")) == ["n3"]
    assert set(Node.objects.values_list("name", flat=True)) == {"n1", "n3"}


@pytest.mark.parametrize("nodes", [1, 20])
def test_a_heartbeat_that_says_nothing_new_takes_two_statements_whatever_it_names(nodes: int) -> None:
    named = [node(f"n{number}") for number in range(nodes)]
    beat("local", *named)
    with CaptureQueriesContext(connection) as queries:
        beat("local", *named)
    statements = [each["sql"] for each in queries if "SAVEPOINT" not in each["sql"]]
    assert len(statements) == 2


def test_what_is_said_of_nodes_beside_what_rounds_go_by_is_no_change() -> None:
    beat("local", node("n1"))
    before = changed_at("local")
    beat("local", replace(node("n1"), notes=["Slow."]))
    assert changed_at("local") == before


@pytest.mark.django_db(transaction=True)
def test_other_capacity_is_a_change() -> None:
    beat("local", node("n1"))
    before = changed_at("local")
    beat("local", node("n1", memory_bytes=2 << 30))
    assert changed_at("local") != before


def test_nodes_without_the_label_are_warned_of_once_for_an_executor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="scheduler.heartbeats"):
        for _ in range(3):
            beat("warned-of", node("n1"), node("n2", labelled=False))
        beat("warned-of-as-well", node("n3", labelled=False))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert told[0].startswith(f"1 of the 2 nodes of executor warned-of lack the label {HOSTNAME} (n2 is one)")


def test_nodes_with_the_label_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    beat("well-labelled", node("n1"), node("n2"))
    assert not caplog.records
