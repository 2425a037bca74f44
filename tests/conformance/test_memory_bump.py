"""memory_bump.json: memory growth of the reservation, of the containers, and over several retries."""

from typing import Any

import pytest

from policies.growth import MemoryRecord, grow
from policies.pods import grown_pod_spec
from policies.policy import MemoryBump
from policies.quantity import QuantityError, parse_bytes
from tests.conformance.cases import Case, cases

CONTAINER = {"name", "memory_request", "memory_limit", "init", "native_sidecar"}


@pytest.mark.parametrize("case", cases("memory_bump.json", "scheduler_cases"))
def test_a_reservation_grows_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(
        ("job_memory_before", "record_before", "bump"),
        ("applied", "requests_bytes", "limits_bytes", "record", "scheduling_info_version_increment"),
    )
    before = case.given["job_memory_before"]
    growth = grow(
        _record(case.given["record_before"]),
        _bump(case.given["bump"]),
        _bytes(before["requests"]),
        _bytes(before["limits"]),
    )
    case.check(
        {
            "applied": growth.applied,
            "requests_bytes": growth.request_bytes,
            "limits_bytes": growth.limit_bytes,
            "record": _written(growth.record),
            "scheduling_info_version_increment": int(growth.applied),
        }
    )


@pytest.mark.parametrize("case", cases("memory_bump.json", "pod_cases"))
def test_containers_grow_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("record", "containers"), ("error", "containers"))
    try:
        grown = grown_pod_spec(_pod_spec(case.given["containers"]), _record(case.given["record"]))
    except QuantityError:
        case.check({"error": True})
        return
    containers = [*grown["containers"], *grown["initContainers"]]
    case.check({"error": False, "containers": {it["name"]: _memory(it) for it in containers}})


@pytest.mark.parametrize("case", cases("memory_bump.json", "chain_cases", expected_keys=("steps",)))
def test_a_job_grows_over_several_retries_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("submitted_memory",), ("steps",))
    submitted = case.given["submitted_memory"]
    reserved: int | None = parse_bytes(submitted)
    record, steps = MemoryRecord(), []
    for step in case.expect["steps"]:
        growth = grow(record, _bump(step["bump"]), reserved, reserved)
        record, reserved = growth.record, growth.request_bytes
        container = {"name": "main", "memory_request": submitted, "memory_limit": submitted}
        grown = grown_pod_spec(_pod_spec([container]), record, reserved_request_bytes=reserved)
        steps.append(
            {
                "bump": step["bump"],
                "applied": growth.applied,
                "reserved_bytes": reserved,
                "pod_bytes": _memory(grown["containers"][0])["request_bytes"],
                "record": _written(record),
            }
        )
    case.check({"steps": steps})


def _bump(bump: dict[str, Any]) -> MemoryBump:
    _known(bump, {"factor", "static"})
    return MemoryBump(static=bump.get("static") or "", factor=bump.get("factor") or 0.0)


def _record(record: dict[str, Any]) -> MemoryRecord:
    _known(record, {"memory_factor", "memory_static"})
    static = record.get("memory_static") or "0"
    return MemoryRecord(factor=record.get("memory_factor") or 0.0, static_bytes=parse_bytes(static))


def _written(record: MemoryRecord) -> dict[str, Any]:
    return {"memory_factor": record.factor, "memory_static_bytes": record.static_bytes}


def _bytes(text: str | None) -> int | None:
    return None if text is None else parse_bytes(text)


def _pod_spec(containers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "containers": [_container(it) for it in containers if not it.get("init")],
        "initContainers": [_container(it) for it in containers if it.get("init")],
    }


def _container(container: dict[str, Any]) -> dict[str, Any]:
    _known(container, CONTAINER)
    resources = {
        kind: {"memory": amount}
        for kind, amount in (
            ("requests", container["memory_request"]),
            ("limits", container["memory_limit"]),
        )
        if amount is not None
    }
    restart = {"restartPolicy": "Always"} if container.get("native_sidecar") else {}
    return {"name": container["name"], "resources": resources} | restart


def _memory(container: dict[str, Any]) -> dict[str, int | None]:
    resources = container["resources"]
    return {
        "request_bytes": _bytes(resources.get("requests", {}).get("memory")),
        "limit_bytes": _bytes(resources.get("limits", {}).get("memory")),
    }


def _known(value: dict[str, Any], keys: set[str]) -> None:
    if set(value) - keys:
        raise KeyError(f"The runner does not know {sorted(set(value) - keys)}.")
