"""Limits: what one queue's jobs of a priority class may hold, and how far back a round looks."""

from dataclasses import replace

from scheduler.placement import Taint, Toleration
from scheduler.planning import Gang, plan
from tests.scheduler.planned_pools import NO_LIMIT, job, node, order, pool, queue, run


def test_jobs_of_a_class_hold_no_more_of_the_pool_than_their_part() -> None:
    jobs = [job(f"{number}", of="low", cpu_millicores=200) for number in range(5)]
    found = plan(pool(queue(*jobs), nodes=(node(),), limits={"low": {"cpu": 0.5}}))
    assert order(found) == ["0", "1"]
    assert found.limited == {
        "nightly": {
            "low": "Queue nightly may hold 50% of the pool's CPU with jobs of the priority class low (0.5 CPU), "
            "and holds 0.4 CPU."
        }
    }


def test_a_smaller_job_and_one_of_another_class_still_start() -> None:
    jobs = [
        job("large", of="low", cpu_millicores=600, age=9),
        job("small", of="low", cpu_millicores=300),
        job("other", of="steady", cpu_millicores=300),
    ]
    found = plan(pool(queue(*jobs), nodes=(node(),), limits={"low": {"cpu": 0.5}}))
    assert order(found) == ["other", "small"]


def test_what_runs_already_counts_for_its_class_only() -> None:
    running = [
        run("r", queue="nightly", of="low", cpu_millicores=300),
        run("s", queue="nightly", of="steady", cpu_millicores=300),
    ]
    jobs = [job("a", of="low", cpu_millicores=200), job("b", of="low", cpu_millicores=200)]
    found = plan(
        pool(queue(*jobs), nodes=(node(cpu_millicores=1_200),), running=running, limits={"low": {"cpu": 0.5}})
    )
    assert order(found) == ["a"]


def test_each_queue_has_the_limit_for_itself() -> None:
    queues = [
        queue(*(job(f"{name}{n}", of="low", cpu_millicores=200) for n in range(3)), name=name)
        for name in "ab"
    ]
    found = plan(pool(*queues, nodes=(node(),), limits={"low": {"cpu": 0.2}}))
    assert order(found) == ["a0", "b0"]


def test_a_part_of_nothing_and_a_part_of_zero_start_only_what_asks_for_none() -> None:
    jobs = [job("plain", of="low"), job("gpu", of="low", resources=(("nvidia.com/gpu", 1),))]
    nodes = (node(resources={"nvidia.com/gpu": 2}),)
    found = plan(pool(queue(*jobs), nodes=nodes, limits={"low": {"nvidia.com/gpu": 0.0}}))
    assert order(found) == ["plain"]
    assert found.limited["nightly"]["low"].endswith("(0 nvidia.com/gpu), and holds 0 nvidia.com/gpu.")


def test_a_gang_counts_whole() -> None:
    of = Gang(id="g", cardinality=3)
    jobs = [job(f"g{number}", of="low", gang=of, cpu_millicores=200) for number in range(3)]
    found = plan(pool(queue(*jobs), nodes=(node(),), limits={"low": {"cpu": 0.5}}))
    assert found.leases == []
    assert found.gangs["nightly"]["g"] == found.limited["nightly"]["low"]


def test_a_queue_that_goes_on_beyond_what_is_looked_at_says_so() -> None:
    waiting = queue(job("a", cpu_millicores=2_000), looked_back=100_000)
    found = plan(pool(waiting, nodes=(node(),)))
    assert found.held == {
        "nightly": "A round looks at the first 100,000 jobs of queue nightly; the rest wait their turn."
    }


def test_a_job_hears_of_its_gang_its_requirements_its_class_or_its_queue() -> None:
    of = Gang(id="g", cardinality=2)
    jobs = [job("large", cpu_millicores=2_000), job("limited", of="low"), job("member", gang=of)]
    waiting = queue(*jobs, rate=NO_LIMIT, looked_back=9)
    found = plan(pool(waiting, nodes=(node(),), limits={"low": {"cpu": 0.0}}))

    def why(priority_class: str = "", gang_id: str = "", key: str = "") -> str:
        return found.why_waiting(queue="nightly", priority_class=priority_class, gang_id=gang_id, key=key)

    assert "less than 2 CPU" in why(key=jobs[0].requirements.key)
    assert "priority class low" in why(priority_class="low", key=jobs[1].requirements.key)
    assert "1 is there" in why(gang_id="g")
    assert "looks at the first 9 jobs" in why()
    assert found.why_waiting(queue="other", priority_class="", gang_id="", key="") == ""


def test_what_gives_way_makes_room_under_the_limit_of_its_class() -> None:
    running = [run("r", queue="nightly", of="low", cpu_millicores=1_000)]
    jobs = [job("urgent", of="urgent", cpu_millicores=400), job("low", of="low", cpu_millicores=400)]
    found = plan(pool(queue(*jobs), nodes=(node(),), running=running, limits={"low": {"cpu": 0.5}}))
    assert order(found) == ["urgent", "low"]
    assert found.limited == {}


def test_a_run_is_not_spared_once_another_has_started_under_its_limit() -> None:
    # The first urgent job takes small's room; low starts elsewhere under the limit; the second urgent job takes
    # large's, which would be enough for both, but then small and low were too much.
    running = [
        run("small", queue="a", of="low", cpu_millicores=300),
        run("large", queue="b", of="steady", cpu_millicores=700),
    ]
    first = [job("u1", of="urgent", cpu_millicores=300), job("low", of="low", cpu_millicores=300)]
    second = [job("u2", of="urgent", cpu_millicores=400)]
    nodes = (node("n1"), node("n2", cpu_millicores=300, taints=(Taint(key="t"),)))
    first[1] = first[1]._replace(
        requirements=replace(first[1].requirements, tolerations=(Toleration("t", "Exists"),))
    )
    state = pool(
        queue(*first, name="a"),
        queue(*second, name="b"),
        nodes=nodes,
        running=running,
        limits={"low": {"cpu": 0.3}},
    )
    found = plan(state)
    assert sorted(order(found)) == ["low", "u1", "u2"]
    assert {each.run_id for each in found.preemptions} == {"small", "large"}
