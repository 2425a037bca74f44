"""Memory growth: exact, by one kind only, and a pod that never needs more than its reservation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.growth import MemoryRecord, grow
from policies.pods import grown_pod_spec, pod_resources
from policies.policy import MemoryBump
from policies.quantity import QuantityError, parse_bytes

GI = 2**30
TWICE = MemoryBump(factor=2.0)


def container(name: str, request: Any = None, limit: Any = None, **fields: Any) -> dict[str, Any]:
    resources = {"requests": {"memory": request}, "limits": {"memory": limit}}
    return {"name": name, "resources": resources, **fields}


def sidecar(name: str, request: str) -> dict[str, Any]:
    return container(name, request, request, restartPolicy="Always")


def memory_of(spec: dict[str, Any]) -> dict[str, str]:
    containers = [*spec.get("containers", []), *spec.get("initContainers", [])]
    return {it["name"]: it["resources"]["requests"]["memory"] for it in containers}


def test_the_story_doubles_64mi_to_128mi_in_reservation_and_pod() -> None:
    growth = grow(MemoryRecord(), TWICE, 64 * 2**20, 64 * 2**20)
    spec = {"containers": [container("main", "64Mi", "64Mi")]}
    assert (growth.applied, growth.request_bytes, growth.limit_bytes) == (True, 2**27, 2**27)
    assert memory_of(grown_pod_spec(spec, growth.record)) == {"main": "128Mi"}


def test_the_submitted_spec_is_left_as_it_is() -> None:
    spec = {"containers": [container("main", "64Mi", "64Mi")]}
    grown_pod_spec(spec, MemoryRecord(factor=2.0))
    assert memory_of(spec) == {"main": "64Mi"}


def test_the_unit_family_is_kept() -> None:
    spec = {
        "containers": [container("a", "1G", "1G"), container("b", "1Gi", "1Gi"), container("c", 1000, 1000)]
    }
    assert memory_of(grown_pod_spec(spec, MemoryRecord(factor=2.0))) == {"a": "2G", "b": "2Gi", "c": "2k"}


def test_a_job_that_grew_by_an_amount_is_not_multiplied_and_the_other_way_round() -> None:
    by_amount, by_factor = MemoryRecord(static_bytes=GI), MemoryRecord(factor=2.0)
    assert not grow(by_amount, TWICE, GI, GI).applied
    assert grow(by_factor, MemoryBump(static="1Gi"), GI, GI).record == by_factor


def test_growing_for_ever_ends_in_a_size_that_no_node_has_and_not_in_an_error() -> None:
    growth = grow(MemoryRecord(), MemoryBump(factor=100.0), GI, GI)
    for _ in range(400):
        growth = grow(growth.record, MemoryBump(factor=100.0), growth.request_bytes, growth.limit_bytes)
    assert growth.exceeds_any_node
    spec = {"containers": [container("main", "1Gi", "1Gi")]}
    assert parse_bytes(memory_of(grown_pod_spec(spec, growth.record))["main"][:100]) > 0


def test_what_init_containers_and_sidecars_need_together_is_counted_like_kubernetes_does() -> None:
    spec = {
        "containers": [container("a", "1Gi", "2Gi"), container("b", "1Gi", "1Gi")],
        "initContainers": [
            container("i1", "4Gi", "4Gi"),
            sidecar("s", "512Mi"),
            container("i2", "3Gi", "8Gi"),
        ],
    }
    resources = pod_resources(spec)
    assert resources.memory_request_bytes == 4 * GI
    assert resources.memory_limit_bytes == 8 * GI + GI // 2


def test_a_resource_nobody_names_is_absent() -> None:
    resources = pod_resources({"containers": [{"name": "a"}, {"name": "b", "resources": None}]})
    assert (resources.memory_request_bytes, dict(resources.limits)) == (None, {})


@pytest.mark.parametrize("written", ["many", True, ["1Gi"]])
def test_a_resource_that_is_no_quantity_is_refused(written: Any) -> None:
    with pytest.raises(QuantityError):
        pod_resources({"containers": [container("a", written)]})


SIZES = st.integers(1, 2**45) | st.integers(1, 2**62)
FACTORS = st.floats(1.0, 100.0, exclude_min=True)
MAIN = st.lists(SIZES, min_size=1, max_size=5)
INITS = st.lists(st.tuples(SIZES, st.booleans()), max_size=3)


def pod(main: list[int], inits: list[tuple[int, bool]]) -> dict[str, Any]:
    return {
        "containers": [container(f"m{index}", str(size), str(size)) for index, size in enumerate(main)],
        "initContainers": [
            container(f"i{index}", str(size), str(size), **({"restartPolicy": "Always"} if stays else {}))
            for index, (size, stays) in enumerate(inits)
        ],
    }


@given(
    MAIN,
    INITS,
    st.lists(FACTORS, min_size=1, max_size=5) | st.lists(st.integers(1, 2**45), min_size=1, max_size=5),
)
def test_a_grown_pod_never_needs_more_than_is_reserved(
    main: list[int], inits: list[tuple[int, bool]], bumps: list[float] | list[int]
) -> None:
    spec = pod(main, inits)
    before = pod_resources(spec)
    record, request, limit = MemoryRecord(), before.memory_request_bytes, before.memory_limit_bytes
    for bump in bumps:
        by = MemoryBump(static=str(bump)) if isinstance(bump, int) else MemoryBump(factor=bump)
        growth = grow(record, by, request, limit)
        record, request, limit = growth.record, growth.request_bytes, growth.limit_bytes
    grown = pod_resources(
        grown_pod_spec(spec, record, reserved_request_bytes=request, reserved_limit_bytes=limit)
    )
    # A quantity beyond the largest cannot be read back; nothing is placed there anyway.
    assert (grown.memory_request_bytes or 0) <= (request or 0)
    assert (grown.memory_limit_bytes or 0) <= (limit or 0)


@given(MAIN, st.integers(1, 2**62))
def test_a_fixed_amount_is_shared_to_the_last_byte(main: list[int], amount: int) -> None:
    grown = grown_pod_spec(pod(main, []), MemoryRecord(static_bytes=amount))
    given_bytes = [int(it["resources"]["requests"]["memory"]) for it in _plain(grown)]
    assert sum(given_bytes) == sum(main) + amount
    assert all(after >= before for before, after in zip(main, given_bytes, strict=True))


def _plain(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers, with memory as digits: sizes here may exceed what a quantity can say."""
    for it in spec["containers"]:
        written = it["resources"]["requests"]["memory"]
        digits, suffix = written.rstrip("kMGTPE"), written.lstrip("0123456789")
        power = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}[suffix]
        it["resources"]["requests"]["memory"] = str(int(digits) * 10**power)
    return list(spec["containers"])


@given(st.integers(1, 2**60), FACTORS, FACTORS)
def test_growth_is_never_shrinkage_and_the_order_of_bumps_is_the_order_of_retries(
    size: int, first: float, second: float
) -> None:
    once = grow(MemoryRecord(), MemoryBump(factor=first), size, None)
    again = grow(once.record, MemoryBump(factor=second), once.request_bytes, None)
    assert size <= (once.request_bytes or 0) <= (again.request_bytes or 0)
    assert again.record.factor == first * second
    assert again.limit_bytes is None
