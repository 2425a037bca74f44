"""Preemption: who gives way to whom, and no more than must."""

import pytest

from scheduler.planning import Gang, Use, plan
from tests.scheduler.planned_pools import MEBI, gave_way, job, node, order, places, pool, queue, run


def test_a_job_takes_the_place_of_a_run_of_a_lower_class() -> None:
    waiting = queue(job("a", of="urgent", cpu_millicores=800), name="a")
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=[run("r", of="steady")]))
    assert (places(found), gave_way(found)) == ({"a": "n1"}, {"r": "a"})
    (preemption,) = found.preemptions
    assert preemption.reason == "Preempted by job a of queue a, whose priority class urgent is more urgent."
    assert (preemption.job_id, preemption.queue, preemption.node) == ("job-r", "b", "n1")


def test_nothing_gives_way_where_there_is_room() -> None:
    waiting = queue(job("a", of="urgent", cpu_millicores=800))
    found = plan(pool(waiting, queue(name="b"), nodes=(node("n1"), node("n2")), running=[run("r", of="low")]))
    assert (places(found), found.preemptions) == ({"a": "n2"}, [])


@pytest.mark.parametrize("of", ["steady", "urgent"])
def test_a_run_of_the_same_or_a_higher_class_stays_when_it_is_not_preemptible(of: str) -> None:
    waiting = queue(job("a", of="steady", cpu_millicores=800), name="a")
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=[run("r", of=of)]))
    assert (found.leases, found.preemptions) == ([], [])
    assert set(found.unplaced) == {waiting.jobs[0].requirements.key}


def test_the_lowest_class_gives_way_first_and_of_it_the_latest_run() -> None:
    running = [
        run("steady", of="steady", cpu_millicores=300),
        run("old", of="low", age=9, cpu_millicores=300),
        run("new", of="low", age=1, cpu_millicores=300),
    ]
    waiting = queue(job("a", of="urgent", cpu_millicores=400))
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert gave_way(found) == {"new": "a"}


def test_a_node_where_a_lower_class_is_enough_goes_before_one_that_lacks_less() -> None:
    running = [
        run("steady", on="n1", of="steady", cpu_millicores=700),
        run("low", on="n2", of="low", cpu_millicores=1_000),
    ]
    waiting = queue(job("a", of="urgent", cpu_millicores=400))
    found = plan(pool(waiting, queue(name="b"), nodes=(node("n1"), node("n2")), running=running))
    assert gave_way(found) == {"low": "a"}


def test_a_run_that_would_be_spared_in_the_end_is_spared() -> None:
    # Taken in order: the small one first, which does not do, then the large one, which does alone.
    running = [
        run("small", of="low", age=1, cpu_millicores=100),
        run("large", of="low", age=9, cpu_millicores=900),
    ]
    waiting = queue(job("a", of="urgent", cpu_millicores=500))
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert gave_way(found) == {"large": "a"}


def test_only_runs_that_hold_what_is_missing_give_way() -> None:
    running = [
        run("memory", of="low", age=1, cpu_millicores=0, memory_bytes=1000 * MEBI),
        run("cpu", of="low", age=9, cpu_millicores=900),
    ]
    waiting = queue(job("a", of="urgent", cpu_millicores=500, memory_bytes=0))
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert gave_way(found) == {"cpu": "a"}


def test_members_of_a_gang_give_way_together() -> None:
    running = [run("g0", on="n1", of="low", gang="g"), run("g1", on="n2", of="low", gang="g")]
    waiting = queue(job("a", of="urgent", cpu_millicores=800, node_selector=()))
    found = plan(
        pool(waiting, queue(name="b"), nodes=(node("n1"), node("n2", cpu_millicores=500)), running=running)
    )
    assert gave_way(found) == {"g0": "a", "g1": "a"}


def test_room_that_is_left_over_goes_to_others() -> None:
    waiting = queue(
        job("a", of="urgent", cpu_millicores=200), job("b", of="low", cpu_millicores=300, priority=9)
    )
    found = plan(
        pool(waiting, queue(name="b"), nodes=(node(),), running=[run("r", of="low", cpu_millicores=1_000)])
    )
    assert (order(found), gave_way(found)) == (["a", "b"], {"r": "a"})


def test_a_lease_of_the_same_round_is_taken_back_instead_of_ended() -> None:
    # The queue with the low job goes first, and its place is wanted a moment later.
    low = queue(job("low", of="low", cpu_millicores=800), name="a")
    urgent = queue(job("urgent", of="urgent", cpu_millicores=800), name="b", used=Use(cpu_millicores=100))
    found = plan(pool(low, urgent, nodes=(node(used=Use(cpu_millicores=100)),)))
    assert (order(found), found.preemptions, found.more) == (["urgent"], [], True)
    assert found.queue_rates["a"] == low.rate


def test_a_run_that_made_way_for_a_lease_taken_back_makes_way_for_the_other() -> None:
    running = [run("r", of="low", queue="c", cpu_millicores=1_000)]
    normal = queue(job("normal", of="steady", cpu_millicores=800), name="a")
    urgent = queue(job("urgent", of="urgent", cpu_millicores=800), name="b", used=Use(cpu_millicores=1))
    found = plan(pool(normal, urgent, queue(name="c"), nodes=(node(),), running=running))
    assert (order(found), gave_way(found)) == (["urgent"], {"r": "urgent"})
    assert found.preemptions[0].reason.endswith("whose priority class urgent is more urgent.")


def test_a_queue_below_its_share_takes_from_one_above_it() -> None:
    running = [run(f"r{number}", age=number, cpu_millicores=100) for number in range(10)]
    waiting = queue(*(job(f"a{number}", of="normal") for number in range(9)), name="a")
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert gave_way(found) == {f"r{number}": f"a{number}" for number in range(5)}
    assert found.preemptions[0].reason.startswith("Preempted by job a")
    assert found.preemptions[0].reason.endswith(
        "of queue a, which holds less than its fair share of the pool while this one holds more."
    )


def test_a_share_that_nobody_wants_is_nobodys_to_claim() -> None:
    # Queue a wants a tenth: b may keep nine.
    running = [run(f"r{number}", age=number, cpu_millicores=100) for number in range(10)]
    waiting = queue(job("a0", of="normal"), name="a")
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert gave_way(found) == {"r0": "a0"}


@pytest.mark.parametrize(("protected", "taken"), [(1.0, 5), (1.5, 3), (2.0, 0), (0.5, 5)])
def test_what_lies_within_the_protected_part_of_a_share_is_safe(protected: float, taken: int) -> None:
    running = [run(f"r{number}", age=number, cpu_millicores=100) for number in range(10)]
    waiting = queue(*(job(f"a{number}", of="normal") for number in range(9)), name="a")
    state = pool(waiting, queue(name="b"), nodes=(node(),), running=running, protected_fraction=protected)
    assert len(plan(state).preemptions) == taken


def test_a_job_does_not_claim_its_share_from_a_higher_class() -> None:
    waiting = queue(job("a", of="low", cpu_millicores=400), name="a")
    running = [run("r", of="normal", cpu_millicores=1_000)]
    assert plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running)).preemptions == []


def test_nothing_is_taken_that_would_be_taken_back() -> None:
    # Without its only run the turn would be b's again.
    waiting = queue(job("a", of="normal", cpu_millicores=400), name="a", used=Use(cpu_millicores=100))
    nodes = (node(used=Use(cpu_millicores=100)),)
    running = [run("r", of="normal", cpu_millicores=900)]
    assert plan(pool(waiting, queue(name="b"), nodes=nodes, running=running)).preemptions == []


def test_a_gang_is_taken_from_only_where_all_of_it_is_too_much() -> None:
    running = [run(f"g{number}", gang="g", cpu_millicores=300) for number in range(3)]
    waiting = queue(job("a", of="normal", cpu_millicores=200), name="a", used=Use(cpu_millicores=100))
    nodes = (node(used=Use(cpu_millicores=100)),)
    assert plan(pool(waiting, queue(name="b"), nodes=nodes, running=running)).preemptions == []


def test_a_gang_that_waits_takes_its_share_as_a_whole() -> None:
    running = [run(f"r{number}", age=number, cpu_millicores=100) for number in range(10)]
    of = Gang(id="g", cardinality=4)
    waiting = queue(*(job(f"g{number}", of="normal", gang=of) for number in range(4)), name="a")
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert (len(found.leases), len(found.preemptions)) == (4, 4)


def test_runs_of_nodes_and_queues_that_are_gone_are_left_alone() -> None:
    running = [run("lost", on="gone", of="low"), run("orphan", queue="gone", of="low", cpu_millicores=0)]
    waiting = queue(job("a", of="urgent", cpu_millicores=2_000))
    found = plan(pool(waiting, queue(name="b"), nodes=(node(),), running=running))
    assert (found.leases, found.preemptions) == ([], [])
