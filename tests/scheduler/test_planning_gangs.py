"""Gangs: all that wait start in one round, or none does."""

from typing import Any

from scheduler.placement import Taint
from scheduler.planning import Gang, NodeState, QueuedJob, TokenBucket, Use, plan
from tests.scheduler.planned_pools import (
    HOSTNAME,
    NO_LIMIT,
    NOON,
    gave_way,
    job,
    node,
    order,
    places,
    pool,
    queue,
    run,
)

ZONE = "topology.kubernetes.io/zone"


def gang(name: str, *, members: int, cardinality: int = 0, label: str = "", **needs: Any) -> list[QueuedJob]:
    """So many members that wait, of a gang that has no more unless it says so."""
    of = Gang(id=name, cardinality=cardinality or members, uniformity_label=label)
    return [job(f"{name}{number}", gang=of, **needs) for number in range(members)]


def zoned(name: str, zone: str, **fields: Any) -> NodeState:
    return node(name, labels={HOSTNAME: name, ZONE: zone}, **fields)


def test_all_members_of_a_gang_start_on_whatever_nodes_there_are() -> None:
    found = plan(
        pool(queue(*gang("g", members=3, cpu_millicores=600)), nodes=[node(n) for n in ("n1", "n2", "n3")])
    )
    assert places(found) == {"g0": "n1", "g1": "n2", "g2": "n3"}


def test_a_gang_that_fits_in_part_leaves_the_room_to_those_behind_it() -> None:
    waiting = queue(*gang("g", members=3, cpu_millicores=600, age=9), job("small", cpu_millicores=900))
    found = plan(pool(waiting, nodes=(node("n1"), node("n2"))))
    assert order(found) == ["small"]
    assert found.gangs == {
        "nightly": {
            "g": "Gang g starts with all of its 3 waiting jobs at once: 2 would fit now. "
            "None of 2 nodes fits: 2 have less than 0.6 CPU free (at most 0.4 CPU)."
        }
    }
    assert found.unplaced == {}


def test_members_of_different_sizes_are_placed_the_largest_first() -> None:
    of = Gang(id="g", cardinality=3)
    sizes = {"a": 300, "b": 700, "c": 1_000}
    members = [job(name, gang=of, cpu_millicores=size) for name, size in sizes.items()]
    assert places(plan(pool(queue(*members), nodes=(node("n1"), node("n2"))))) == {
        "c": "n1",
        "b": "n2",
        "a": "n2",
    }


def test_a_gang_waits_until_all_of_its_jobs_are_there() -> None:
    found = plan(pool(queue(*gang("g", members=2, cardinality=3)), nodes=(node(),)))
    assert found.leases == []
    assert found.gangs == {"nightly": {"g": "Gang g waits for all of its 3 jobs: 2 are there."}}


def test_members_that_were_given_back_start_beside_those_that_run() -> None:
    of = Gang(id="g", cardinality=3, placed=2, uniformity_label=ZONE, uniformity_value="b")
    nodes = (zoned("n1", "a", used=Use(cpu_millicores=500)), zoned("n2", "b"))
    assert places(plan(pool(queue(job("g2", gang=of)), nodes=nodes))) == {"g2": "n2"}


def test_a_gang_with_a_label_goes_to_nodes_with_one_value_of_it() -> None:
    nodes = (zoned("n1", "a"), zoned("n2", "b"), zoned("n3", "b"), node("n4"), node("n5"))
    found = plan(pool(queue(*gang("g", members=2, label=ZONE, cpu_millicores=800)), nodes=nodes))
    assert places(found) == {"g0": "n2", "g1": "n3"}


def test_the_fullest_nodes_with_one_value_are_taken() -> None:
    nodes = (zoned("n1", "a"), zoned("n2", "b", used=Use(cpu_millicores=500)))
    found = plan(pool(queue(*gang("g", members=2, label=ZONE)), nodes=nodes))
    assert set(places(found).values()) == {"n2"}


def test_a_gang_that_fits_nowhere_together_is_told_how_many_would_fit() -> None:
    nodes = (zoned("n1", "a"), zoned("n2", "b"), zoned("n3", "b", used=Use(cpu_millicores=500)))
    found = plan(pool(queue(*gang("g", members=2, label=ZONE, cpu_millicores=800)), nodes=nodes))
    assert found.leases == []
    assert found.gangs["nightly"]["g"] == (
        "Gang g starts with all of its 2 waiting jobs at once, on nodes with one value of the label "
        f"{ZONE}: 1 would fit now where it is b."
    )


def test_a_gang_whose_label_no_node_has_enough_of_says_so() -> None:
    found = plan(pool(queue(*gang("g", members=2, label=ZONE)), nodes=(node("n1"), node("n2"))))
    assert found.gangs["nightly"]["g"].endswith(
        "nowhere is there enough for them, even with nothing else at work."
    )


def test_members_keep_away_from_nodes_that_do_not_take_them() -> None:
    tainted = zoned("n1", "a", taints=(Taint(key="gpu", value="only"),))
    found = plan(pool(queue(*gang("g", members=2, label=ZONE)), nodes=(tainted, zoned("n2", "b"))))
    assert set(places(found).values()) == {"n2"}


def test_a_gang_takes_its_tokens_all_at_once() -> None:
    rate = TokenBucket(rate=1.0, burst=5, tokens=2.0, at=NOON)
    waiting = queue(*gang("g", members=3, age=9), job("behind"), rate=rate)
    found = plan(pool(waiting, nodes=(node(),)))
    assert found.leases == []
    assert found.held == {
        "nightly": "Queue nightly starts at most 1 jobs a second; the rest wait their turn."
    }


def test_while_a_gang_waits_for_tokens_of_the_pool_nobody_takes_them() -> None:
    rate = TokenBucket(rate=1.0, burst=5, tokens=2.0, at=NOON)
    queues = [queue(*gang("g", members=3), name="a"), queue(job("other"), name="b")]
    found = plan(pool(*queues, nodes=(node(),), rate=rate))
    assert found.leases == []
    assert set(found.held) == {"a", "b"}


def test_a_gang_larger_than_any_burst_is_told_so_and_holds_up_nobody() -> None:
    rate = TokenBucket.full(rate=1.0, burst=2, at=NOON)
    waiting = queue(*gang("g", members=3, age=9), job("behind"), rate=rate)
    found = plan(pool(waiting, nodes=(node(),)))
    assert order(found) == ["behind"]
    assert found.gangs["nightly"]["g"] == (
        "Gang g starts with all of its 3 jobs at once, and queue nightly starts at most 2 at once."
    )


def test_a_gang_that_does_not_fit_into_what_is_left_of_a_round_starts_in_the_next() -> None:
    waiting = queue(job("first", age=9), *gang("g", members=3))
    found = plan(pool(waiting, nodes=(node(),), leases_per_round=3))
    assert (order(found), found.more) == (["first"], True)


def test_gangs_of_one_name_in_two_queues_are_two_gangs() -> None:
    queues = [queue(*gang("g", members=1, cardinality=2), name=name, rate=NO_LIMIT) for name in "ab"]
    found = plan(pool(*queues, nodes=(node(),)))
    assert found.leases == []
    assert set(found.gangs) == {"a", "b"}


def test_a_gang_takes_from_lower_classes_for_all_its_members_or_from_nobody() -> None:
    running = [run(f"r{number}", on=f"n{number}", of="low", cpu_millicores=1_000) for number in (1, 2)]
    nodes = (node("n1"), node("n2"))
    two = gang("g", members=2, of="urgent", cpu_millicores=800)
    found = plan(pool(queue(*two), queue(name="b"), nodes=nodes, running=running))
    assert sorted(gave_way(found)) == ["r1", "r2"]
    three = gang("g", members=3, of="urgent", cpu_millicores=800)
    found = plan(pool(queue(*three), queue(name="b"), nodes=nodes, running=running))
    assert (found.leases, found.preemptions) == ([], [])
