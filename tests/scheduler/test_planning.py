"""Planning: who goes next, to which node, and why the others wait."""

from collections import Counter
from datetime import timedelta
from typing import Any

from scheduler import planning
from scheduler.placement import Requirements
from scheduler.planning import TokenBucket, Use, plan
from tests.scheduler.planned_pools import (
    HOSTNAME,
    MEBI,
    NO_LIMIT,
    NOON,
    job,
    node,
    order,
    places,
    pool,
    queue,
)


def test_jobs_of_a_queue_go_by_priority_then_submission_then_id() -> None:
    jobs = [job("d", priority=1, age=9), job("c", age=1), job("b", age=5), job("a", age=1)]
    assert order(plan(pool(queue(*jobs), nodes=(node(),)))) == ["b", "a", "c", "d"]


def test_the_fullest_node_that_fits_is_filled_first() -> None:
    nodes = (node("n1"), node("n2", used=Use(cpu_millicores=800)), node("n3", used=Use(cpu_millicores=950)))
    found = plan(pool(queue(*(job(name) for name in "abc")), nodes=nodes))
    assert places(found) == {"a": "n2", "b": "n2", "c": "n1"}


def test_a_job_too_large_for_now_does_not_hold_up_those_behind_it() -> None:
    found = plan(pool(queue(job("large", age=9, cpu_millicores=2_000), job("small")), nodes=(node(),)))
    assert order(found) == ["small"]
    large = Requirements(cpu_millicores=2_000, memory_bytes=64 * MEBI)
    assert found.unplaced == {large.key: "The only node does not fit: 1 has less than 2 CPU free (1 CPU)."}


def test_an_avoided_a_closed_and_a_mislabelled_node_take_nothing_and_the_reason_names_each() -> None:
    nodes = (node("n1"), node("n2", schedulable=False), node("n3", labels={HOSTNAME: "n3", "disk": "hdd"}))
    picky = job("a", avoided_nodes=("n1",), node_selector=(("disk", "hdd"),))
    assert places(plan(pool(queue(picky), nodes=nodes))) == {"a": "n3"}
    nowhere = job("b", avoided_nodes=("n1", "n3"))
    found = plan(pool(queue(nowhere), nodes=nodes))
    assert found.unplaced == {
        nowhere.requirements.key: "None of 3 nodes fits: 2 are avoided after a failure there; 1 takes no new runs."
    }


def test_other_resources_are_counted() -> None:
    nodes = (
        node("n1", resources={"nvidia.com/gpu": 2}, used=Use(resources={"nvidia.com/gpu": 1})),
        node("n2"),
    )
    jobs = [job(name, resources=(("nvidia.com/gpu", 1),)) for name in "ab"]
    found = plan(pool(queue(*jobs), nodes=nodes))
    assert places(found) == {"a": "n1"}
    assert list(found.unplaced.values()) == [
        "None of 2 nodes fits: 2 have less than 1 nvidia.com/gpu free (at most 0 nvidia.com/gpu)."
    ]


def test_a_job_that_was_grown_goes_where_it_fits_now() -> None:
    nodes = (node("n1", used=Use(memory_bytes=960 * MEBI)), node("n2"))
    as_submitted, grown = job("a"), job("a", memory_bytes=128 * MEBI)
    assert places(plan(pool(queue(as_submitted), nodes=nodes))) == {"a": "n1"}
    assert places(plan(pool(queue(grown), nodes=nodes))) == {"a": "n2"}


def test_without_a_node_jobs_wait() -> None:
    found = plan(pool(queue(job("a")), nodes=()))
    assert list(found.unplaced.values()) == [
        "No node has been heard of. The job waits until an executor reports one."
    ]


def test_queues_take_turns_by_what_they_hold_and_their_priority_factor() -> None:
    first = queue(*(job(f"a{n}") for n in range(9)), name="a")
    second = queue(*(job(f"b{n}") for n in range(9)), name="b", priority_factor=2.0)
    found = plan(pool(first, second, nodes=(node(cpu_millicores=900),)))
    assert Counter(lease.queue for lease in found.leases) == {"a": 6, "b": 3}


def test_a_queue_that_already_holds_much_waits_for_the_others() -> None:
    first = queue(job("a0"), name="a", used=Use(cpu_millicores=700))
    second = queue(*(job(f"b{n}") for n in range(9)), name="b")
    nodes = (node(used=Use(cpu_millicores=700)),)
    assert order(plan(pool(first, second, nodes=nodes))) == ["b0", "b1", "b2"]


def test_queues_whose_jobs_reserve_nothing_alternate_too() -> None:
    queues = [
        queue(*(job(f"{name}{n}", cpu_millicores=0, memory_bytes=0) for n in range(2)), name=name)
        for name in "ab"
    ]
    assert order(plan(pool(*queues, nodes=(node(),)))) == ["a0", "b0", "a1", "b1"]


def test_a_cordoned_queue_starts_nothing_and_says_so() -> None:
    found = plan(pool(queue(job("a"), cordoned=True), nodes=(node(),)))
    assert found.leases == []
    assert found.held == {"nightly": "Queue nightly is cordoned: its jobs wait until it is opened again."}
    assert found.unplaced == {}


def test_a_queue_starts_no_more_than_its_bucket_holds() -> None:
    rate = TokenBucket.full(rate=50.0, burst=3, at=NOON)
    found = plan(pool(queue(*(job(name) for name in "abcde"), rate=rate), nodes=(node(),)))
    assert order(found) == ["a", "b", "c"]
    assert found.queue_rates["nightly"].tokens == 0
    assert found.held == {
        "nightly": "Queue nightly starts at most 50 jobs a second; the rest wait their turn."
    }


def test_the_pool_starts_no_more_than_its_bucket_holds_and_every_queue_hears_of_it() -> None:
    queues = [queue(*(job(f"{name}{n}") for n in range(3)), name=name) for name in "ab"]
    found = plan(pool(*queues, nodes=(node(),), rate=TokenBucket.full(rate=100.0, burst=3, at=NOON)))
    assert len(found.leases) == 3
    assert set(found.held) == {"a", "b"}


def test_a_bucket_refills_with_time_up_to_its_burst_and_a_clock_that_goes_back_adds_nothing() -> None:
    bucket = TokenBucket.full(rate=50.0, burst=1_000, at=NOON).take(1_000)
    assert not bucket.allows(1)
    assert bucket.refilled(NOON + timedelta(seconds=2)).tokens == 100
    assert bucket.refilled(NOON + timedelta(hours=1)).tokens == 1_000
    assert bucket.refilled(NOON - timedelta(hours=1)).tokens == 0


def test_a_rate_of_zero_is_no_limit() -> None:
    found = plan(pool(queue(*(job(f"{n:02}") for n in range(10))), nodes=(node(),), rate=NO_LIMIT))
    assert len(found.leases) == 10


def test_a_higher_priority_class_goes_before_a_smaller_priority() -> None:
    jobs = [
        job("a", priority=0, of="low"),
        job("b", priority=9, of="urgent"),
        job("c", priority=5, of="steady"),
    ]
    assert order(plan(pool(queue(*jobs), nodes=(node(),)))) == ["b", "c", "a"]


def test_a_round_writes_no_more_than_one_transaction_should() -> None:
    many = [job(f"{n:05}", cpu_millicores=0, memory_bytes=0) for n in range(planning.LEASES_PER_ROUND + 1)]
    found = plan(pool(queue(*many), nodes=(node(),)))
    assert (len(found.leases), found.more) == (planning.LEASES_PER_ROUND, True)


class CountedLabels(dict[str, str]):
    """Labels that count how often a node is looked at."""

    looks = 0

    def get(self, *args: Any) -> Any:
        CountedLabels.looks += 1
        return super().get(*args)


def test_equal_jobs_share_the_search_for_a_node() -> None:
    nodes = tuple(node(f"n{number}", labels=CountedLabels()) for number in range(100))
    many = [job(f"{number:05}", node_selector=(("disk", "ssd"),)) for number in range(10_000)]
    found = plan(pool(queue(*many), nodes=nodes))
    assert found.leases == []
    assert CountedLabels.looks <= 3 * len(nodes)
