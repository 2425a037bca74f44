"""Whether jobs could run anywhere: asked of one picture of the fleet, which is renewed when the fleet changes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import Heartbeat, NodeDescription
from scheduler.heartbeats import record_heartbeat
from scheduler.models import Executor, Job, Node, Run
from scheduler.models.clock import database_now
from scheduler.placement import Requirements
from scheduler.queries.schedulability import Answer, FleetCheck
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.factories import MEBI, make_executor, make_job, make_node, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

LABEL = "kubernetes.io/hostname"
CONFIG = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), node_id_label=LABEL, indexed_node_labels=(LABEL,)
)
GROW_AND_AVOID = {"affinity": {"avoidSameNode": True}, "resources": {"memory": {"factor": 2}}}
NOBODY_CAN_LOOK = replace(CONFIG, executor_timeout_seconds=float("nan"))


def asking(mebi: int) -> Requirements:
    return Requirements(memory_bytes=mebi * MEBI)


def beat(*mebi: int) -> None:
    nodes = tuple(
        NodeDescription(
            name=f"local-{number}", labels={LABEL: f"local-{number}"}, cpu_millicores=1_000, memory_bytes=size * MEBI
        )
        for number, size in enumerate(mebi, 1)
    )  # fmt: skip
    record_heartbeat(
        Heartbeat(executor="local", pool="default", version="", agent_time="", nodes=nodes), config=CONFIG
    )


def queries(act: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        act()
    return [query["sql"] for query in asked if "SAVEPOINT" not in query["sql"]]


def test_an_answer_is_about_all_a_node_has_whoever_holds_it_now() -> None:
    executor = make_executor(nodes=1)
    make_run(make_job(memory_bytes=1024 * MEBI), executor=executor)
    Node.objects.update(schedulable=False)
    found = FleetCheck().ask([asking(1024), asking(1025)], config=CONFIG)
    assert found == {asking(1024): Answer.FITS, asking(1025): Answer.NO_FIT}


def test_with_no_node_known_everything_fits() -> None:
    assert FleetCheck().ask([asking(1 << 20)], config=CONFIG) == {asking(1 << 20): Answer.FITS}


def test_the_picture_is_shared_while_nothing_changes() -> None:
    beat(64)
    fleet = FleetCheck()
    fleet.ask([asking(1)], config=CONFIG)
    beat(64)
    [only] = queries(lambda: fleet.ask([asking(2)], config=CONFIG))
    assert "scheduler_node" not in only


@pytest.mark.django_db(transaction=True)
def test_the_picture_is_renewed_when_an_executor_tells_of_a_change() -> None:
    beat(64)
    fleet = FleetCheck()
    assert fleet.ask([asking(100)], config=CONFIG)[asking(100)] is Answer.NO_FIT
    beat(64, 128)
    assert fleet.ask([asking(100)], config=CONFIG)[asking(100)] is Answer.FITS


def test_the_picture_is_renewed_when_an_executor_falls_silent_or_goes() -> None:
    beat(64)
    big = make_executor("big", nodes=0)
    make_node(big, memory_bytes=512 * MEBI)
    fleet = FleetCheck()
    assert fleet.ask([asking(100)], config=CONFIG)[asking(100)] is Answer.FITS
    Executor.objects.filter(name="big").update(heartbeat_at=database_now() - timedelta(days=1))
    assert fleet.ask([asking(100)], config=CONFIG)[asking(100)] is Answer.NO_FIT


def test_equal_requirements_are_looked_at_once() -> None:
    beat(64)
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return 0.0

    fleet = FleetCheck(clock=clock)
    fleet.ask([asking(1)] * 50, config=CONFIG)
    once = len(looks)
    fleet.ask([asking(1)], config=CONFIG)
    assert len(looks) == once > 0


def test_what_has_no_answer_in_time_has_none_and_is_asked_again() -> None:
    beat(64)
    time = [0.0]

    def clock() -> float:
        time[0] += 10.0
        return time[0]

    fleet = FleetCheck(answer_seconds=1.0, clock=clock)
    assert fleet.ask([asking(1)], config=CONFIG)[asking(1)] is Answer.NO_ANSWER
    fleet._answer_seconds = 60.0
    assert fleet.ask([asking(1)], config=CONFIG)[asking(1)] is Answer.FITS


def test_an_error_is_an_answer_and_not_remembered() -> None:
    beat(64)
    fleet = FleetCheck()
    assert fleet.ask([asking(1)], config=NOBODY_CAN_LOOK) == {asking(1): Answer.ERROR}
    assert fleet.ask([asking(1)], config=CONFIG) == {asking(1): Answer.FITS}


class Counted(FleetCheck):
    """The real check, counted."""

    calls = 0

    def ask(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        return super().ask(*args, **options)


def fail_many(*, jobs: int) -> None:
    make_policy("oom-grow", rules=[{"action": "Retry", "onCategory": "oom", "mutate": GROW_AND_AVOID}])
    queue = make_queue("nightly", policies=("oom-grow",))
    executor = make_executor("local", nodes=3)
    for number in range(jobs):
        job = make_job(queue, memory_bytes=(number % 5 + 1) * MEBI)
        make_run(job, executor=executor, state=RunState.FAILED, node=f"local-{number % 3 + 1}")


def test_a_batch_asks_at_most_twice_however_many_jobs_it_has() -> None:
    fail_many(jobs=30)
    fleet = Counted()
    assert settle_runs(config=CONFIG, fleet=fleet).requeued == 30
    assert fleet.calls == 2


def test_a_check_that_fails_leaves_its_runs_and_settles_the_others() -> None:
    fail_many(jobs=3)
    other = make_run(make_job(), state=RunState.FAILED, category="user-code")
    settled = settle_runs(config=CONFIG, fleet=Unreachable())
    assert (settled.runs, settled.more) == (1, False)
    assert Run.objects.get(id=other.id).settled_at is not None
    left = Run.objects.filter(settled_at=None)
    assert {(run.settle_tries, run.settle_error) for run in left} == {(0, "")}
    assert left.count() == 3
    assert set(Job.objects.filter(runs__in=left).values_list("state", flat=True)) == {"running"}


def test_however_often_it_fails_no_run_is_set_aside_and_the_next_check_decides() -> None:
    fail_many(jobs=2)
    for _ in range(5):
        assert settle_runs(config=CONFIG, fleet=Unreachable()).runs == 0
    assert settle_runs(config=CONFIG).requeued == 2


class Unreachable(FleetCheck):
    """The real check of a fleet that nobody can look at."""

    def ask(self, wanted: Any, *, config: Configuration) -> Any:
        return super().ask(wanted, config=NOBODY_CAN_LOOK)
