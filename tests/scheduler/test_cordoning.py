"""Cordons: nothing new starts there, runs go on, everybody sees who closed it and why."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.actors import Actor, NotPermitted
from scheduler.administration import create_queue, update_queue
from scheduler.config import Configuration
from scheduler.cordoning import cordon_executor, cordon_node, cordon_queue, delete_executor
from scheduler.errors import Conflict, Invalid, NotFound
from scheduler.executors.protocol import Heartbeat, NodeDescription
from scheduler.heartbeats import record_heartbeat
from scheduler.leasing import run_round
from scheduler.models import Change, Executor, Node, Queue, Run
from scheduler.models.clock import database_now
from scheduler.queries.fleet import fleet_nodes
from scheduler.queries.waiting import waiting_because
from scheduler.queuefile import QueueSpec
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_queue, make_run

CONFIG = Configuration()
pytestmark = pytest.mark.django_db(transaction=True)


def round_now() -> int:
    return run_round(pool="default", config=CONFIG).placed


def silent_executor(name: str = "demo") -> Executor:
    return make_executor(name, heartbeat_at=database_now() - timedelta(days=1))


def changes() -> list[tuple[str, str, str, Any, str]]:
    rows = Change.objects.order_by("id")
    return [(each.actor, each.kind, each.subject, each.after, each.note) for each in rows]


def test_a_cordoned_node_takes_no_new_run_and_keeps_those_it_has(olga: Actor) -> None:
    make_executor("local", nodes=1)
    running = make_run(make_job())
    waiting = make_job()
    assert cordon_node(
        executor="local", node="local-1", cordoned=True, reason="Disk is being replaced.", actor=olga
    )
    assert round_now() == 0
    assert waiting_because(waiting) == (
        "The only node does not fit: 1 takes no new runs (it is cordoned by olga: Disk is being replaced)."
    )
    running.refresh_from_db()
    assert running.state == RunState.RUNNING
    assert cordon_node(executor="local", node="local-1", cordoned=False, actor=olga)
    assert round_now() == 1


def test_a_cordoned_executor_takes_no_new_run_on_any_node(olga: Actor) -> None:
    make_executor("local")
    job = make_job()
    assert cordon_executor(executor="local", cordoned=True, actor=olga)
    assert round_now() == 0
    assert waiting_because(job) == (
        "None of 2 nodes fits: 2 take no new runs (its executor is cordoned by olga)."
    )
    assert cordon_executor(executor="local", cordoned=False, actor=olga)
    assert round_now() == 1


def test_a_cordoned_queue_starts_nothing(olga: Actor) -> None:
    make_executor()
    job = make_job()
    assert cordon_queue(queue="nightly", cordoned=True, reason="month end.", actor=olga)
    assert round_now() == 0
    assert waiting_because(job) == (
        "Queue 'nightly' is cordoned by olga: month end. No job of it is started until it is uncordoned."
    )
    assert cordon_queue(queue="nightly", cordoned=False, actor=olga)
    assert round_now() == 1


def test_who_cordoned_a_queue_by_its_file_is_told_too(olga: Actor) -> None:
    create_queue(spec=QueueSpec(name="nightly", cordoned=True), actor=olga)
    job = make_job(Queue.objects.get())
    told = waiting_because(job)
    assert told.startswith("Queue 'nightly' is cordoned by olga. No job of it")
    cordon_queue(queue="nightly", cordoned=False, actor=olga)
    update_queue(spec=QueueSpec(name="nightly", cordoned=True), actor=replace(olga, name="otto"))
    assert waiting_because(job) == told.replace("olga", "otto")


def test_cordons_are_kept_in_the_change_log_once(olga: Actor) -> None:
    make_executor("local")
    make_queue()
    for _ in range(2):
        cordon_node(executor="local", node="local-2", cordoned=True, reason="disk", actor=olga)
        cordon_executor(executor="local", cordoned=True, actor=olga)
        cordon_queue(queue="nightly", cordoned=True, actor=olga)
    assert changes() == [
        ("olga", "cordon_node", "local/local-2", {"cordoned": True}, "disk"),
        ("olga", "cordon_executor", "local", {"cordoned": True}, ""),
        ("olga", "cordon_queue", "nightly", {"cordoned": True}, ""),
    ]


def test_who_closed_it_and_why_are_gone_when_it_is_open_again(olga: Actor) -> None:
    make_executor("local")
    cordon_node(executor="local", node="local-1", cordoned=True, reason="disk", actor=olga)
    cordon_node(executor="local", node="local-1", cordoned=False, reason="replaced", actor=olga)
    node = Node.objects.get(name="local-1")
    assert (node.cordoned, node.cordoned_by, node.cordon_reason) == (False, "", "")
    assert changes()[-1] == ("olga", "cordon_node", "local/local-1", {"cordoned": False}, "replaced")


def test_a_heartbeat_leaves_cordons_as_they_are(olga: Actor) -> None:
    make_executor("local", nodes=1)
    cordon_node(executor="local", node="local-1", cordoned=True, reason="disk", actor=olga)
    cordon_executor(executor="local", cordoned=True, reason="move", actor=olga)
    nodes = [NodeDescription(name="local-1", cpu_millicores=1, memory_bytes=1)]
    record_heartbeat(Heartbeat(executor="local", pool="default", version="", agent_time="", nodes=nodes))
    node = Node.objects.select_related("executor").get()
    assert (node.cordoned, node.cordon_reason, node.cpu_millicores) == (True, "disk", 1)
    assert (node.executor.cordoned, node.executor.cordon_reason) == (True, "move")


def test_cordoned_nodes_count_for_what_could_run_one_day(olga: Actor) -> None:
    make_executor("local", nodes=1)
    cordon_executor(executor="local", cordoned=True, actor=olga)
    [node] = fleet_nodes(config=CONFIG)
    assert not node.schedulable


@pytest.mark.parametrize(
    "verb",
    [
        lambda actor: cordon_queue(queue="nightly", cordoned=True, actor=actor),
        lambda actor: cordon_executor(executor="local", cordoned=True, actor=actor),
        lambda actor: cordon_node(executor="local", node="local-1", cordoned=True, actor=actor),
        lambda actor: delete_executor(name="local", actor=actor, config=CONFIG),
    ],
)
def test_it_takes_a_permission_whatever_is_named(verb: Callable[[Actor], bool], alice: Actor) -> None:
    with pytest.raises(NotPermitted):
        verb(alice)


def test_what_is_not_there_is_named(olga: Actor) -> None:
    make_executor("local")
    with pytest.raises(NotFound, match="There is no queue 'weekly'"):
        cordon_queue(queue="weekly", cordoned=True, actor=olga)
    with pytest.raises(NotFound, match="There is no executor 'demo'"):
        cordon_executor(executor="demo", cordoned=True, actor=olga)
    with pytest.raises(NotFound, match="There is no node 'local-3'"):
        cordon_node(executor="local", node="local-3", cordoned=True, actor=olga)
    with pytest.raises(NotFound):
        cordon_node(executor="local", node="a\x00", cordoned=True, actor=olga)
    with pytest.raises(Invalid):
        cordon_executor(executor="local", cordoned=True, reason="x" * 2_001, actor=olga)


def test_a_silent_executor_is_taken_away_with_its_nodes_and_its_runs_stay(olga: Actor) -> None:
    run = make_run(make_job(), executor=silent_executor(), state=RunState.SUCCEEDED)
    assert delete_executor(name="demo", actor=olga, config=CONFIG)
    assert not Executor.objects.exists()
    assert not Node.objects.exists()
    assert Run.objects.get(id=run.id).executor_id == "demo"
    assert not delete_executor(name="demo", actor=olga, config=CONFIG)
    assert [each[1:3] for each in changes()] == [("delete_executor", "demo")]


def test_an_executor_that_is_heard_of_stays(olga: Actor) -> None:
    make_executor("local")
    with pytest.raises(Conflict, match="still reports"):
        delete_executor(name="local", actor=olga, config=CONFIG)


def test_an_executor_whose_agent_was_stopped_need_not_fall_silent_first(olga: Actor) -> None:
    make_executor("demo")
    Node.objects.update(schedulable=False)
    assert delete_executor(name="demo", actor=olga, config=CONFIG)


def test_an_executor_with_active_runs_stays(olga: Actor) -> None:
    make_run(make_job(), executor=silent_executor())
    with pytest.raises(Conflict, match="has active runs"):
        delete_executor(name="demo", actor=olga, config=CONFIG)


def test_an_executor_that_calls_again_is_there_again(olga: Actor) -> None:
    silent_executor()
    delete_executor(name="demo", actor=olga, config=CONFIG)
    beat = Heartbeat(executor="demo", pool="default", version="", agent_time="", nodes=[])
    assert record_heartbeat(beat)
    assert Executor.objects.get().name == "demo"
