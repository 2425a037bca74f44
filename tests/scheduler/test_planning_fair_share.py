"""Fair share: whose turn it is, and what part of a pool is whose."""

from collections import Counter
from typing import Any

import pytest

from scheduler.planning import Use, plan
from scheduler.planning.fairness import Claim, fair_shares
from tests.scheduler.planned_pools import MEBI, job, node, order, pool, queue


def claim(demand: float, weight: float = 1.0) -> Claim:
    return Claim(weight=weight, demand=demand)


@pytest.mark.parametrize(
    ("claims", "shares"),
    [
        ({}, {}),
        ({"a": claim(9.0)}, {"a": 1.0}),
        ({"a": claim(1.0), "b": claim(1.0)}, {"a": 0.5, "b": 0.5}),
        # Half the factor is twice the weight, and twice the share.
        ({"a": claim(1.0, 2.0), "b": claim(1.0)}, {"a": 2 / 3, "b": 1 / 3}),
        # What one has no use for goes to the others.
        ({"a": claim(0.1), "b": claim(1.0), "c": claim(1.0)}, {"a": 0.1, "b": 0.45, "c": 0.45}),
        # Even if that makes another one content.
        ({"a": claim(0.1), "b": claim(0.4), "c": claim(1.0)}, {"a": 0.1, "b": 0.4, "c": 0.5}),
        ({"a": claim(0.2), "b": claim(0.3)}, {"a": 0.2, "b": 0.3}),
        ({"idle": claim(0.0), "a": claim(1.0)}, {"a": 1.0}),
    ],
)
def test_a_share_goes_by_weight_and_what_is_not_wanted_goes_to_the_others(
    claims: dict[str, Claim], shares: dict[str, float]
) -> None:
    assert fair_shares(claims) == pytest.approx(shares)


def test_a_share_is_the_largest_of_any_resource_that_counts() -> None:
    # One queue is hungry for memory, the other for CPU: each is given two thirds of what it wants most.
    gpu_like = [job(f"m{n}", cpu_millicores=100, memory_bytes=400 * MEBI) for n in range(9)]
    hungry = [job(f"c{n}", cpu_millicores=300, memory_bytes=100 * MEBI) for n in range(9)]
    nodes = (node(cpu_millicores=900, memory_bytes=1800 * MEBI),)
    found = plan(pool(queue(*gpu_like, name="a"), queue(*hungry, name="b"), nodes=nodes))
    assert Counter(lease.queue for lease in found.leases) == {"a": 3, "b": 2}


@pytest.mark.parametrize(("resources", "first"), [(("cpu", "memory"), "a"), (("nvidia.com/gpu",), "b")])
def test_only_configured_resources_count(resources: tuple[str, ...], first: str) -> None:
    held: dict[str, Any] = {"a": Use(resources={"nvidia.com/gpu": 3}), "b": Use(cpu_millicores=500)}
    queues = [queue(job(f"{name}0"), name=name, used=used) for name, used in held.items()]
    nodes = (node(resources={"nvidia.com/gpu": 4}, used=Use(cpu_millicores=500)),)
    found = plan(pool(*queues, nodes=nodes, fair_share_resources=resources))
    assert order(found)[0] == f"{first}0"


def test_a_resource_that_no_node_has_counts_for_nothing() -> None:
    found = plan(pool(queue(job("a")), nodes=(node(),), fair_share_resources=("cpu", "example.com/fpga")))
    assert order(found) == ["a"]
