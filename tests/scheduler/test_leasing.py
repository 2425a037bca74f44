"""Rounds on a real PostgreSQL: what is leased, what waits and why, and what happens when rounds meet."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler import leasing
from scheduler.config import Configuration
from scheduler.executors.protocol import Heartbeat, NodeDescription
from scheduler.expiring import expire_leases
from scheduler.heartbeats import record_heartbeat
from scheduler.leasing import RoundResult, run_round
from scheduler.models import Event, Job, Node, Pool, PoolRound, Queue, Run
from scheduler.models.clock import database_now
from scheduler.models.fleet import WORK_CHANNEL
from scheduler.planning import Plan, PoolState, plan
from scheduler.queries.fleet import pools_with_work
from scheduler.queries.waiting import reasons_for_waiting
from scheduler.states import JobState, RunState
from tests.factories import MEBI, make_executor, make_job, make_node, make_queue, make_run

CONFIG = Configuration()
pytestmark = pytest.mark.django_db(transaction=True)


def round_now(config: Configuration = CONFIG) -> RoundResult:
    return run_round(pool="default", config=config)


def states() -> dict[str, str]:
    return dict(Job.objects.values_list("id", "state"))


def test_a_queued_job_gets_a_run_on_a_node_and_everybody_is_told() -> None:
    make_executor("local", nodes=1)
    job = make_job(resources={}, run_count=2, memory_factor=2.0)

    assert round_now() == RoundResult(placed=1)

    job.refresh_from_db()
    run = Run.objects.get()
    assert (job.state, job.version, job.run_count, job.state_changed_at) == ("leased", 2, 3, run.leased_at)
    assert (run.job_id, run.number, run.state) == (job.id, 3, RunState.LEASED)
    assert (run.executor_id, run.node, run.node_id, run.pool) == ("local", "local-1", "local-1", "default")
    assert (run.cpu_request_millicores, run.memory_limit_bytes, run.memory_factor) == (100, 64 * MEBI, 2.0)
    event = Event.objects.get()
    assert (event.kind, event.run_id, event.payload) == (
        "leased",
        run.id,
        {"clusterId": "local", "pool": "default"},
    )


def test_executors_hear_of_their_leases_when_the_round_is_written() -> None:
    make_executor("local")
    make_job()
    with psycopg.connect(**_line(), autocommit=True) as line:
        line.execute(f"LISTEN {WORK_CHANNEL}")
        round_now()
        (bell,) = line.notifies(timeout=10, stop_after=1)
    assert bell.payload == "local"


def _line() -> dict[str, Any]:
    known = connection.get_connection_params()
    return {name: known[name] for name in ("dbname", "user", "password", "host", "port") if known.get(name)}


def test_a_second_round_changes_nothing() -> None:
    make_executor()
    make_job()
    round_now()
    assert round_now() == RoundResult()
    assert (Run.objects.count(), Event.objects.count()) == (1, 1)


def test_a_pool_nobody_has_heard_of_has_no_rounds() -> None:
    make_job()
    assert run_round(pool="nowhere", config=CONFIG) == RoundResult()
    assert not PoolRound.objects.exists()


def test_what_does_not_fit_now_waits_with_its_reason_and_goes_once_there_is_room() -> None:
    make_executor("local", nodes=1)
    holder = make_run(make_job(memory_bytes=1000 * MEBI))
    job = make_job(memory_bytes=64 * MEBI)

    assert round_now() == RoundResult()
    assert reasons_for_waiting([job]) == {
        job.id: "The only node does not fit: 1 has less than 64Mi memory free (24Mi memory)."
    }

    Run.objects.filter(id=holder.id).update(state=RunState.SUCCEEDED, ended_at=database_now())
    assert round_now().placed == 1
    job.refresh_from_db()
    assert reasons_for_waiting([job]) == {}


def test_a_round_reserves_what_the_job_was_grown_to() -> None:
    executor = make_executor("local", nodes=0)
    make_node(executor, name="small", memory_bytes=100 * MEBI)
    make_node(executor, name="large", memory_bytes=200 * MEBI)
    grown = make_job(memory_bytes=128 * MEBI, submitted_memory_bytes=64 * MEBI, memory_factor=2.0)
    assert round_now().placed == 1
    assert Run.objects.get(job=grown).node == "large"
    make_job(memory_bytes=100 * MEBI, job_set="later")
    assert round_now().placed == 1
    assert Run.objects.get(job__job_set__name="later").node == "small"


def test_other_resources_that_runs_hold_are_not_given_twice() -> None:
    executor = make_executor("local", nodes=0)
    make_node(executor, name="local-1", resources={"nvidia.com/gpu": 3})
    for _ in range(2):
        make_job(resources={"nvidia.com/gpu": 2})
    assert round_now().placed == 1
    assert round_now().placed == 0


def test_a_job_stays_away_from_nodes_it_avoids() -> None:
    make_executor("local", nodes=2)
    make_job(avoided_nodes=["local-1"])
    round_now()
    assert Run.objects.get().node == "local-2"


def test_a_cordoned_queue_waits_and_says_so() -> None:
    make_executor()
    job = make_job(make_queue("nightly", cordoned=True))
    assert round_now().placed == 0
    assert reasons_for_waiting([job]) == {
        job.id: "Queue 'nightly' is cordoned: no job of it is started until it is uncordoned."
    }
    Queue.objects.update(cordoned=False)
    assert round_now().placed == 1


def test_nodes_of_an_executor_that_fell_silent_take_nothing() -> None:
    make_executor("gone", heartbeat_at=database_now() - timedelta(hours=2))
    make_executor("local", nodes=1)
    make_job()
    round_now()
    assert Run.objects.get().executor_id == "local"


def test_only_the_nodes_of_the_pool_are_filled() -> None:
    make_executor("elsewhere", pool="other")
    make_executor("local", pool="default", nodes=1)
    make_job()
    assert sorted(pools_with_work()) == ["default", "other"]
    round_now()
    assert Run.objects.get().executor_id == "local"
    assert pools_with_work() == []


def test_a_burst_is_used_up_refills_with_time_and_is_remembered_between_rounds() -> None:
    config = Configuration(maximum_scheduling_rate=0.001, maximum_scheduling_burst=3)
    make_executor()
    for _ in range(5):
        make_job()
    assert round_now(config).placed == 3
    assert round_now(config).placed == 0
    waiting = Job.objects.filter(state=JobState.QUEUED)
    assert set(reasons_for_waiting(waiting).values()) == {
        "The pool starts at most 0.001 jobs a second; the rest wait their turn."
    }
    last = PoolRound.objects.get()
    tokens, _ = last.rates[""]
    last.rates[""] = [tokens, (database_now() - timedelta(seconds=1_000)).isoformat()]
    last.save()
    assert round_now(config).placed == 1


def test_each_queue_has_a_burst_of_its_own() -> None:
    config = Configuration(maximum_per_queue_scheduling_rate=0.001, maximum_per_queue_scheduling_burst=2)
    make_executor()
    for number in range(8):
        make_job(("nightly", "daily")[number % 2])
    assert round_now(config).placed == 4
    assert {queue: Run.objects.filter(job__queue=queue).count() for queue in ("nightly", "daily")} == {
        "nightly": 2,
        "daily": 2,
    }


def test_a_round_looks_no_further_back_than_it_is_told() -> None:
    executor = make_executor("local", nodes=0)
    make_node(executor, memory_bytes=64 * MEBI)
    first = make_job(memory_bytes=128 * MEBI)
    second = make_job(memory_bytes=64 * MEBI)
    assert round_now(Configuration(max_queue_lookback=1)).placed == 0
    assert round_now(Configuration(max_queue_lookback=2)).placed == 1
    assert states() == {first.id: "queued", second.id: "leased"}


def test_a_round_of_five_hundred_jobs_takes_as_many_queries_as_a_round_of_one() -> None:
    def count(jobs: int) -> int:
        _many_jobs(jobs, queue=f"queue-{jobs}")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert round_now().placed == jobs
        Run.objects.update(state=RunState.SUCCEEDED, ended_at=database_now())
        return len(queries)

    for number in range(25):
        executor = make_executor(f"local-{number}", nodes=0)
        make_node(executor, cpu_millicores=2_000, memory_bytes=1280 * MEBI)
    assert count(1) == count(500)


def _many_jobs(number: int, *, queue: str) -> None:
    first = make_job(queue)
    Job.objects.bulk_create(
        Job(
            **{
                field.attname: getattr(first, field.attname)
                for field in Job._meta.concrete_fields
                if field.name != "id"
            }
        )
        for _ in range(number - 1)
    )


def between_plan_and_write(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Have something happen after the next plan is made and before it is written."""

    def plan_then(state: PoolState) -> Plan:
        monkeypatch.setattr(leasing, "plan", plan)
        found = plan(state)
        happens()
        return found

    monkeypatch.setattr(leasing, "plan", plan_then)


def elsewhere[T](call: Callable[[], T]) -> T:
    """The call's answer, made on another thread with a connection of its own."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(in_a_thread, call).result(timeout=30)


def in_a_thread[T](call: Callable[[], T]) -> T:
    """The call's answer; the thread's connection is closed."""
    try:
        return call()
    finally:
        connection.close()


def test_a_job_cancelled_between_plan_and_write_is_not_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    make_executor()
    doomed, other = make_job(), make_job()
    now = database_now()
    between_plan_and_write(
        monkeypatch,
        lambda: Job.objects.filter(id=doomed.id).update(state=JobState.CANCELLED, ended_at=now),
    )
    result = round_now()
    assert result.placed == 1
    assert states() == {doomed.id: "cancelled", other.id: "leased"}
    assert Run.objects.get().job_id == other.id
    assert PoolRound.objects.get().placed == 1


def test_a_node_closed_between_plan_and_write_takes_nothing_and_the_reason_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_executor("local", nodes=1)
    job = make_job()

    def close() -> None:
        Node.objects.update(schedulable=False, notes=["The agent was stopped."])

    between_plan_and_write(monkeypatch, close)
    assert round_now() == RoundResult(placed=0, again=True)
    assert round_now().placed == 0
    assert reasons_for_waiting([job]) == {
        job.id: "The only node does not fit: 1 takes no new runs (the agent was stopped)."
    }
    Node.objects.update(schedulable=True)
    assert round_now().placed == 1


def test_once_a_closing_heartbeat_is_recorded_no_lease_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that is being written is waited for; what it leases is there when the heartbeat is answered."""
    make_executor("local", nodes=1)
    make_job()
    written = leasing._lease
    heartbeat = Heartbeat(
        executor="local",
        pool="default",
        version="",
        agent_time="",
        nodes=[NodeDescription(name="local-1", cpu_millicores=2_000, memory_bytes=1, schedulable=False)],
    )
    threads = ThreadPoolExecutor(1)
    closing: list[Future[object]] = []

    def lease_while_the_agent_closes(*leases: Any, **where: Any) -> Any:
        monkeypatch.setattr(leasing, "_lease", written)
        closing.append(threads.submit(in_a_thread, lambda: record_heartbeat(heartbeat)))
        with pytest.raises(TimeoutError):
            closing[0].result(timeout=0.5)
        return written(*leases, **where)

    monkeypatch.setattr(leasing, "_lease", lease_while_the_agent_closes)
    with threads:
        assert round_now().placed == 1
        assert closing[0].result(timeout=30)


def test_a_job_changed_between_plan_and_write_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    make_executor()
    job = make_job()
    between_plan_and_write(monkeypatch, lambda: Job.objects.filter(id=job.id).update(version=7))
    assert round_now() == RoundResult(placed=0, again=True)
    assert round_now().placed == 1


def test_a_plan_made_before_another_round_was_written_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the two would give the same room to different jobs."""
    executor = make_executor("local", nodes=0)
    make_node(executor, memory_bytes=64 * MEBI)
    make_job(submitted_at=database_now() - timedelta(hours=1))

    def another_round_for_an_older_job() -> None:
        make_job(submitted_at=database_now() - timedelta(hours=2))
        assert elsewhere(round_now).placed == 1

    between_plan_and_write(monkeypatch, another_round_for_an_older_job)
    assert round_now() == RoundResult(placed=0, again=True)
    assert round_now().placed == 0
    assert Run.objects.count() == 1


def test_the_loser_of_the_lock_leaves_a_mark_and_the_winner_answers_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_executor()
    make_job()
    losers: list[RoundResult] = []
    written = leasing._lease

    def lease_while_another_tries(*leases: Any, **where: Any) -> Any:
        monkeypatch.setattr(leasing, "_lease", written)
        losers.append(elsewhere(_late_round))
        return written(*leases, **where)

    monkeypatch.setattr(leasing, "_lease", lease_while_another_tries)
    assert round_now() == RoundResult(placed=1, again=True)
    assert losers == [RoundResult(placed=0, again=False)]
    assert not Pool.objects.get().round_wanted
    assert round_now().placed == 1


def _late_round() -> RoundResult:
    """A round for a job that came while another round was being written."""
    make_job(job_set="late")
    return round_now()


def test_many_rounds_at_once_lease_each_job_once_and_overcommit_no_node() -> None:
    executor = make_executor("local", nodes=0)
    for number in range(4):
        make_node(executor, name=f"local-{number}", cpu_millicores=1_000)
    for number in range(60):
        make_job(("nightly", "daily", "hourly")[number % 3], memory_bytes=None)

    def rounds(_: int) -> int:
        try:
            return sum(round_now().placed for _ in range(6))
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        placed = sum(threads.map(rounds, range(6)))
    while (result := round_now()).again:
        placed += result.placed
    assert placed + result.placed == Run.objects.count() == 40
    for number in range(4):
        assert Run.objects.filter(node=f"local-{number}").count() == 10
    numbers = Event.objects.order_by("job_set", "number").values_list("job_set", "number")
    assert len(set(numbers)) == len(numbers) == 40


def test_a_round_must_not_be_part_of_a_longer_transaction() -> None:
    make_executor()
    make_job()
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        round_now()


def test_leases_of_a_silent_executor_expire_and_await_settling() -> None:
    silent = make_executor("silent", heartbeat_at=database_now() - timedelta(hours=2))
    lively = make_executor("lively")
    lost = make_run(executor=silent)
    kept = make_run(make_job(), executor=lively)

    assert expire_leases(config=CONFIG) == 1

    lost.refresh_from_db()
    kept.refresh_from_db()
    assert kept.state == RunState.RUNNING
    assert (lost.state, lost.attempted, lost.settled_at) == (RunState.LEASE_EXPIRED, True, None)
    assert (lost.category, lost.subcategory) == ("internal", "lease-expired")
    assert lost.error.message == "Lease expired"
    assert lost.ended_at is not None
    assert lost.ended_at == lost.recorded_at
    assert Job.objects.get(id=lost.job_id).state == JobState.RUNNING
    event = Event.objects.get()
    assert (event.kind, event.run_id, event.payload) == ("leaseExpired", lost.id, {})


def test_leases_expire_once() -> None:
    make_run(executor=make_executor(heartbeat_at=database_now() - timedelta(hours=2)))
    assert expire_leases(config=CONFIG) == 1
    assert expire_leases(config=CONFIG) == 0
    assert Event.objects.count() == 1


def test_an_executor_heard_of_within_the_timeout_keeps_its_leases() -> None:
    executor = make_executor(heartbeat_at=database_now() - timedelta(minutes=30))
    make_run(executor=executor)
    assert expire_leases(config=CONFIG) == 0
    assert expire_leases(config=Configuration(executor_timeout_seconds=60)) == 1


def test_expiring_five_hundred_leases_takes_as_many_queries_as_one() -> None:
    executor = make_executor(heartbeat_at=database_now() - timedelta(hours=2))

    def count(runs: int) -> int:
        for _ in range(runs):
            make_run(make_job(), executor=executor)
        with CaptureQueriesContext(connection) as queries:
            assert expire_leases(config=CONFIG) == runs
        return len(queries)

    assert count(1) == count(50)
