"""Rounds and what they read and write besides leases: classes, gangs, limits, and runs that give way."""

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler import leasing
from scheduler.config import Configuration
from scheduler.leasing import RoundResult, run_round
from scheduler.models import Event, Job, Node, Run
from scheduler.models.clock import database_now
from scheduler.models.fleet import WORK_CHANNEL
from scheduler.placement import NodeCapacity
from scheduler.planning import Plan, PlannedLease, PlannedPreemption, PoolState, QueuedJob, TokenBucket
from scheduler.priorityclasses import ClassConfiguration
from scheduler.queries.pools import pool_snapshot
from scheduler.queries.waiting import waiting_because
from scheduler.queries.work import work_for
from scheduler.states import JobState, RunState
from tests.factories import MEBI, make_executor, make_job, make_node, make_queue, make_run

CLASSES = {
    "urgent": ClassConfiguration(priority=2_000),
    "batch": ClassConfiguration(priority=1_000),
    "spare": ClassConfiguration(
        priority=10,
        preemptible=True,
        maximum_fraction={"cpu": 0.5},
        maximum_fraction_by_pool={"default": {"memory": 0.25}},
    ),
}
CONFIG = Configuration(priority_classes=CLASSES, default_priority_class_name="batch")
pytestmark = pytest.mark.django_db(transaction=True)


def state(config: Configuration = CONFIG) -> PoolState:
    found = pool_snapshot("default", config=config)
    assert found is not None
    return found.state


def jobs(config: Configuration = CONFIG) -> Mapping[str, QueuedJob]:
    """The jobs a round looks at, by id."""
    return {job.id: job for queue in state(config).queues for job in queue.jobs}


def kinds(job: Job) -> list[str]:
    return list(Event.objects.filter(job=job).order_by("number").values_list("kind", flat=True))


class TestReading:
    def test_classes_go_before_priorities_in_what_the_look_back_reaches(self) -> None:
        make_executor()
        make_job(priority_class="batch", priority=0)
        urgent = make_job(priority_class="urgent", priority=9)
        gone = make_job(priority_class="no-such-class", priority=0)
        near = Configuration(
            priority_classes=CLASSES, default_priority_class_name="batch", max_queue_lookback=1
        )
        assert list(jobs(near)) == [urgent.id]
        [queue] = state(near).queues
        assert queue.looked_back == 1
        assert gone.id in jobs()
        assert state().queues[0].looked_back == 0

    def test_jobs_from_before_there_were_classes_are_of_the_default_one(self) -> None:
        make_executor()
        old = make_job(priority_class="")
        make_run(make_job(priority_class=""), priority_class="")
        assert jobs()[old.id].priority_class == "batch"
        [queue] = state().queues
        assert set(queue.used_by_class) == {"batch"}

    def test_what_a_job_asks_of_nodes_and_what_nodes_say_is_all_there(self) -> None:
        executor = make_executor(nodes=0, honours=["spec.containers", "spec.tty"])
        taint = {"key": "gpu", "value": "only", "effect": "NoSchedule"}
        make_node(executor, taints=[taint], resources={"nvidia.com/gpu": 1, "tapes": 3})
        expression = {"key": "zone", "operator": "In", "values": ["a"]}
        tolerated = {"key": "gpu", "operator": "Exists", "value": "", "effect": ""}
        job = make_job(affinity=[[expression]], tolerations=[tolerated], needed_fields=["spec.tty"])
        wanted = jobs()[job.id].requirements
        assert [[str(each) for each in term] for term in wanted.affinity] == [["zone In (a)"]]
        assert [each.key for each in wanted.tolerations] == ["gpu"]
        assert wanted.needed_fields == ("spec.tty",)
        [node] = [each.capacity for each in state().nodes]
        assert [str(each) for each in node.taints] == ["gpu=only"]
        assert node.resources == {"nvidia.com/gpu": 1}
        assert node.honours == frozenset({"spec.containers", "spec.tty"})

    def test_a_gang_comes_with_its_members_beyond_the_look_back_limit(self) -> None:
        make_executor()
        members = [make_job(gang_id="train", gang_cardinality=3) for _ in range(3)]
        make_job()
        near = Configuration(
            priority_classes=CLASSES, default_priority_class_name="batch", max_queue_lookback=1
        )
        found = jobs(near)
        assert set(found) == {member.id for member in members}
        gang = found[members[0].id].gang
        assert gang is not None
        assert (gang.id, gang.cardinality, gang.placed) == ("train", 3, 0)

    def test_members_are_not_thinned_out_as_equal_jobs_are(self) -> None:
        make_executor()
        for _ in range(3):
            make_job(gang_id="train", gang_cardinality=3)
            make_job()
        few = Configuration(
            priority_classes=CLASSES,
            default_priority_class_name="batch",
            maximum_per_queue_scheduling_burst=2,
        )
        assert sum(job.gang is not None for job in jobs(few).values()) == 3

    def test_of_equal_jobs_no_more_are_looked_at_than_there_is_space_for(self) -> None:
        make_node(make_executor(nodes=1), cpu_millicores=8_000, memory_bytes=4 * MEBI)
        for _ in range(4):
            make_job(cpu_request_millicores=3_000, memory_bytes=MEBI)
        large = [make_job("other", cpu_request_millicores=9_000) for _ in range(2)]
        found = jobs()
        assert sum(job.requirements.cpu_millicores == 3_000 for job in found.values()) == 3
        assert large[0].id in found
        assert large[1].id not in found

    def test_space_is_where_runs_may_have_to_give_way_and_not_on_closed_nodes(self) -> None:
        executor = make_executor(nodes=1)
        make_node(executor, schedulable=False)
        make_run(
            make_job(priority_class="spare"),
            executor=executor, node="local-1", priority_class="spare", cpu_request_millicores=2_000,
        )  # fmt: skip
        for _ in range(4):
            make_job(priority_class="urgent", cpu_request_millicores=1_000)
        assert len(jobs()) == 2
        Run.objects.update(priority_class="urgent")
        assert len(jobs()) == 1

    def test_members_that_started_count_with_where_they_are(self) -> None:
        executor = make_executor(nodes=0)
        make_node(executor, name="local-1", labels={"rack": "r7"})
        asked: dict[str, Any] = {"gang_id": "train", "gang_cardinality": 4, "gang_uniformity_label": "rack"}
        returned = make_job(**asked)
        make_run(make_job(**asked))
        make_run(make_job(**asked), state=RunState.SUCCEEDED)
        Job.objects.filter(runs__state="succeeded").update(state="succeeded", ended_at=database_now())
        gang = jobs()[returned.id].gang
        assert gang is not None
        assert (gang.placed, gang.uniformity_value) == (2, "r7")

    def test_a_gang_of_the_same_id_that_ended_before_does_not_count(self) -> None:
        make_executor()
        earlier = database_now() - timedelta(hours=1)
        asked: dict[str, Any] = {"gang_id": "train", "gang_cardinality": 2}
        make_run(make_job(**asked, submitted_at=earlier), state=RunState.SUCCEEDED)
        Job.objects.update(state="succeeded", ended_at=earlier)
        again = make_job(**asked)
        gang = jobs()[again.id].gang
        assert gang is not None
        assert gang.placed == 0

    def test_limits_are_those_of_the_pool(self) -> None:
        make_executor()
        assert state().limits == {"spare": {"cpu": 0.5, "memory": 0.25}}

    def test_only_runs_that_may_give_way_to_what_waits_are_there(self) -> None:
        make_executor()
        spare = make_run(make_job(priority_class="spare"), priority_class="spare")
        batch = make_run(make_job(priority_class="batch"), priority_class="batch")
        make_run(make_job(priority_class="spare", cancel_requested_at=database_now()), priority_class="spare")
        assert state().running == []
        make_job(priority_class="batch")
        assert [run.run_id for run in state().running] == [str(spare.id)]
        make_job(priority_class="urgent")
        assert {run.run_id for run in state().running} == {str(spare.id), str(batch.id)}

    def test_more_of_everything_takes_no_more_queries(self) -> None:
        make_executor()
        asked: dict[str, Any] = {"gang_id": "train", "gang_cardinality": 2}

        def queries() -> int:
            with CaptureQueriesContext(
                connection,
            ) as found:
                state()
            return len(found)

        make_job(priority_class="urgent", **asked)
        make_run(make_job(priority_class="spare"), priority_class="spare")
        before = queries()
        for number in range(5):
            make_job(f"queue-{number}", priority_class="urgent", gang_id=f"g{number}", gang_cardinality=2)
            make_run(make_job(priority_class="spare"), priority_class="spare")
        assert queries() == before


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the next rounds carry out this plan, whatever they read; first, something may happen."""

    def have(leases: list[PlannedLease], preemptions: list[PlannedPreemption], first: Any = None) -> None:
        def plan(_: PoolState) -> Plan:
            if first is not None:
                first()
            return Plan(
                leases=leases,
                preemptions=preemptions,
                unplaced={},
                held={},
                rate=TokenBucket.full(rate=0, burst=0, at=database_now()),
                queue_rates={},
                more=False,
            )

        monkeypatch.setattr(leasing, "plan", plan)

    return have


def lease(job: Job, node: str = "local-1") -> PlannedLease:
    found = jobs()[job.id]
    capacity = NodeCapacity(
        executor="local", name=node, labels={"kubernetes.io/hostname": node}, cpu_millicores=1, memory_bytes=1
    )
    return PlannedLease(queue=job.queue_id, job=found, node=capacity)


def giving_way(run: Run, *, to: Job) -> PlannedPreemption:
    return PlannedPreemption(
        run_id=str(run.id),
        job_id=run.job_id,
        queue=run.job.queue_id,
        executor=run.executor_id,
        node=run.node,
        reason="Gave way to an urgent job.",
        for_job=to.id,
    )


class TestPreempting:
    def test_a_run_gives_way_its_job_ends_and_everybody_is_told(self, planned: Callable[..., None]) -> None:
        make_executor("local", nodes=1)
        run = make_run(make_job(priority_class="spare"), priority_class="spare")
        urgent = make_job(priority_class="urgent")
        planned([lease(urgent)], [giving_way(run, to=urgent)])
        assert run_round(pool="default", config=CONFIG).placed == 1
        run.refresh_from_db()
        run.job.refresh_from_db()
        urgent.refresh_from_db()
        assert (run.state, run.undecided_because, run.job.state) == ("preempted", "preempted", "preempted")
        assert run.settled_at == run.ended_at == run.job.ended_at
        assert run.error.message == "Gave way to an urgent job."
        assert urgent.state == JobState.LEASED
        assert kinds(run.job) == ["preempted", "failed"]
        told, failed = (event.payload for event in Event.objects.filter(job=run.job).order_by("number"))
        assert (told["preemptingJobId"], told["reason"]) == (urgent.id, "Gave way to an urgent job.")
        assert (failed["reason"], failed["retryable"]) == ("Gave way to an urgent job.", False)

    def test_the_executor_is_woken_and_told_to_forget_the_run(self, planned: Callable[..., None]) -> None:
        make_executor("local", nodes=1)
        make_executor("other", nodes=1)
        run = make_run(make_job(), executor=make_executor("third", nodes=1), node="third-1")
        urgent = make_job(priority_class="urgent")
        planned([lease(urgent)], [giving_way(run, to=urgent)])
        known = connection.get_connection_params()
        line_of = {
            name: known[name] for name in ("dbname", "user", "password", "host", "port") if known.get(name)
        }
        with psycopg.connect(**line_of, autocommit=True) as line:
            line.execute(f"LISTEN {WORK_CHANNEL}")
            run_round(pool="default", config=CONFIG)
            woken = {bell.payload for bell in line.notifies(timeout=10, stop_after=2)}
        assert woken == {"local", "third"}
        assert work_for(executor="third", known_runs=[str(run.id)]).forget == (str(run.id),)

    def test_a_requeued_job_keeps_what_it_had_grown_to_and_counts_nothing(
        self, planned: Callable[..., None]
    ) -> None:
        make_executor("local", nodes=1)
        run = make_run(make_job(memory_factor=2.0, memory_bytes=128 * MEBI))
        urgent = make_job(priority_class="urgent")
        planned([lease(urgent)], [giving_way(run, to=urgent)])
        requeuing = Configuration(
            priority_classes=CLASSES, default_priority_class_name="batch", requeue_preempted=True
        )
        run_round(pool="default", config=requeuing)
        job = Job.objects.get(id=run.job_id)
        assert (job.state, job.ended_at, job.memory_factor) == ("queued", None, 2.0)
        run.refresh_from_db()
        assert (run.state, run.attempted) == ("preempted", False)
        failed = Event.objects.get(job=job, kind="failed")
        assert failed.payload["retryable"] is True

    def test_a_run_that_ended_by_itself_is_left_alone_and_its_room_is_used(
        self, planned: Callable[..., None]
    ) -> None:
        make_executor("local", nodes=1)
        run = make_run(make_job())
        urgent = make_job(priority_class="urgent")

        def end() -> None:
            Run.objects.filter(id=run.id).update(state="succeeded", ended_at=database_now())

        planned([lease(urgent)], [giving_way(run, to=urgent)], first=end)
        assert run_round(pool="default", config=CONFIG).placed == 1
        run.refresh_from_db()
        assert run.state == "succeeded"
        assert kinds(run.job) == []

    def test_nothing_gives_way_to_a_job_that_does_not_come_and_nothing_counts_on_its_room(
        self, planned: Callable[..., None]
    ) -> None:
        make_executor("local", nodes=1)
        run = make_run(make_job())
        urgent, small = make_job(priority_class="urgent"), make_job()

        def cancel() -> None:
            Job.objects.filter(id=urgent.id).update(state="cancelled", ended_at=database_now())

        planned([lease(urgent), lease(small)], [giving_way(run, to=urgent)], first=cancel)
        assert run_round(pool="default", config=CONFIG) == RoundResult(placed=0, again=True)
        run.refresh_from_db()
        assert run.state == "running"

    def test_a_run_somebody_cancelled_meanwhile_keeps_its_room_until_it_ends(
        self, planned: Callable[..., None]
    ) -> None:
        make_executor("local", nodes=2)
        run = make_run(make_job())
        urgent, other = make_job(priority_class="urgent"), make_job()

        def cancel() -> None:
            Job.objects.filter(id=run.job_id).update(state="cancelling", cancel_requested_at=database_now())

        planned([lease(urgent), lease(other, "local-2")], [giving_way(run, to=urgent)], first=cancel)
        assert run_round(pool="default", config=CONFIG).placed == 1
        run.refresh_from_db()
        assert run.state == "running"
        other.refresh_from_db()
        assert other.state == JobState.LEASED

    def test_a_gang_of_which_one_member_is_gone_does_not_start(self, planned: Callable[..., None]) -> None:
        make_executor("local", nodes=2)
        asked: dict[str, Any] = {"gang_id": "train", "gang_cardinality": 2}
        one, two, alone = make_job(**asked), make_job(**asked), make_job()

        def cancel() -> None:
            Job.objects.filter(id=two.id).update(state="cancelled", ended_at=database_now())

        planned([lease(one), lease(two, "local-2"), lease(alone)], [], first=cancel)
        assert run_round(pool="default", config=CONFIG).placed == 1
        one.refresh_from_db()
        assert one.state == JobState.QUEUED


def test_thirty_two_rounds_at_once_overcommit_no_node_and_halve_no_gang() -> None:
    executor = make_executor("local", nodes=0)
    for number in range(6):
        make_node(executor, name=f"local-{number}", cpu_millicores=1_000)
    for number in range(3):
        make_queue(f"queue-{number}")
    for number in range(60):
        group = number // 3
        gang: dict[str, Any] = {"gang_id": f"g{group}", "gang_cardinality": 3} if group % 2 else {}
        make_job(
            f"queue-{group % 3}",
            memory_bytes=None,
            cpu_request_millicores=(100, 250, 400)[number % 3],
            priority_class=("urgent", "batch", "spare")[group % 3],
            submitted_at=database_now() - timedelta(seconds=number),
            **gang,
        )

    def rounds(_: int) -> int:
        try:
            return sum(run_round(pool="default", config=CONFIG).placed for _ in range(3))
        finally:
            connection.close()

    with ThreadPoolExecutor(32) as threads:
        placed = sum(threads.map(rounds, range(32)))
    assert placed == Run.objects.count() > 0
    active = Run.objects.filter(state="leased")
    for node in Node.objects.all():
        held = sum(active.filter(node=node.name).values_list("cpu_request_millicores", flat=True))
        assert held <= node.cpu_millicores
    assert active.values("job").distinct().count() == active.count()
    for gang_id in set(Job.objects.exclude(gang_id="").values_list("gang_id", flat=True)):
        states = set(Job.objects.filter(gang_id=gang_id).values_list("state", flat=True))
        assert len(states) == 1
    assert active.exclude(job__gang_id="").exists()


def test_a_run_of_no_pool_is_no_business_of_a_round() -> None:
    make_executor("local", pool="other")
    make_run(make_job(priority_class="spare"), priority_class="spare", id=uuid.uuid4())
    make_executor("mine", nodes=1)
    make_job(priority_class="urgent")
    assert state().running == []


def test_a_job_goes_only_to_executors_that_act_on_all_it_asks_for() -> None:
    make_executor("plain", nodes=1)
    make_executor("rich", nodes=1, honours=["spec.containers", "spec.hostNetwork"])
    make_executor("silent-about-fields", nodes=1, honours=[], pool="other")
    job = make_job(needed_fields=["spec.hostNetwork"])
    assert run_round(pool="default", config=CONFIG).placed == 1
    assert Run.objects.get(job=job).executor_id == "rich"
    Node.objects.filter(executor="rich").update(schedulable=False)
    waiting = make_job(needed_fields=["spec.hostNetwork"])
    assert run_round(pool="default", config=CONFIG).placed == 0
    assert waiting_because(waiting) == (
        "None of 2 nodes fits: 1 takes no new runs; 1 does not act on spec.hostNetwork."
    )
    assert run_round(pool="other", config=CONFIG).placed == 1


@pytest.mark.parametrize(("gangs", "cardinality", "members"), [(2, 4, 3), (1, 4, 4), (1, 5, 5)])
def test_a_job_starts_though_gangs_of_equal_jobs_wait_for_room_or_members(
    gangs: int, cardinality: int, members: int
) -> None:
    make_executor("local")  # two nodes of two cores
    for gang in range(gangs):
        for _ in range(members):
            make_job(
                gang_id=f"gang-{gang}",
                gang_cardinality=cardinality,
                gang_uniformity_label="kubernetes.io/hostname",
                cpu_request_millicores=1_000,
            )
    alone = make_job(cpu_request_millicores=1_000)
    assert run_round(pool="default", config=CONFIG).placed == 1
    assert Run.objects.get().job_id == alone.id
