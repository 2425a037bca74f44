"""The fleet as pages show it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.config import Configuration
from scheduler.errors import NotFound
from scheduler.models.clock import database_now
from scheduler.queries.fleet import executor_row, executor_rows, fleet_nodes
from tests.factories import MEBI, make_executor, make_job, make_node, make_run

CONFIG = Configuration()
pytestmark = pytest.mark.django_db


def test_executors_come_with_their_nodes_and_what_runs_hold_of_them() -> None:
    executor = make_executor("local", nodes=2)
    make_executor("gone", nodes=0, heartbeat_at=database_now() - timedelta(hours=2))
    for queue in ("nightly", "daily"):
        job = make_job(queue, resources={"nvidia.com/gpu": 1})
        make_run(job, executor=executor, resources={"nvidia.com/gpu": 1})
    make_run(make_job(), executor=executor, node="local-2", memory_limit_bytes=None)

    gone, local = executor_rows(config=CONFIG)

    assert (gone.executor.name, gone.is_silent, gone.nodes) == ("gone", True, [])
    assert (local.is_silent, local.runs) == (False, 3)
    first, second = local.nodes
    assert (first.node.name, first.runs, first.cpu_millicores_used, first.memory_bytes_used) == (
        "local-1",
        2,
        200,
        128 * MEBI,
    )
    assert first.resources_used == {"nvidia.com/gpu": 2}
    assert (second.runs, second.memory_bytes_used, second.resources_used) == (1, 64 * MEBI, {})


def test_an_executor_nobody_has_heard_of_is_not_found() -> None:
    with pytest.raises(NotFound, match="no executor 'elsewhere'"):
        executor_row("elsewhere", config=CONFIG)
    make_executor("local")
    assert executor_row("local", config=CONFIG).executor.name == "local"


def test_the_fleet_counts_closed_nodes_and_not_those_of_silent_executors() -> None:
    local = make_executor("local", nodes=0)
    make_node(local, name="closed", schedulable=False)
    make_executor("gone", heartbeat_at=database_now() - timedelta(hours=2))
    make_executor("elsewhere", pool="other", nodes=1)
    assert [node.name for node in fleet_nodes(config=CONFIG)] == ["elsewhere-1", "closed"]
    assert [node.name for node in fleet_nodes(config=CONFIG, pool="default")] == ["closed"]


def test_the_page_takes_as_many_queries_for_ten_executors_as_for_one() -> None:
    def count(name: str) -> int:
        make_run(make_job(), executor=make_executor(name))
        with CaptureQueriesContext(connection) as queries:
            executor_rows(config=CONFIG)
        return len(queries)

    assert len({count(f"local-{number}") for number in range(10)}) == 1
