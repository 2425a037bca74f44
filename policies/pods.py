"""The resources of a pod spec: what a pod needs altogether, and the spec rewritten with grown memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from policies.growth import MemoryRecord, scaled_down
from policies.quantity import QuantityError, format_like, parse_bytes, parse_quantity

__all__ = ["PodResources", "grown_pod_spec", "pod_resources"]

Kind = Literal["requests", "limits"]
Spec = dict[str, Any]
KINDS: tuple[Kind, Kind] = ("requests", "limits")


@dataclass(frozen=True, kw_only=True, slots=True)
class PodResources:
    """Exact totals of a pod per resource: cores, bytes (whole), pieces. A resource nobody names is absent."""

    requests: Mapping[str, Fraction]
    limits: Mapping[str, Fraction]

    @property
    def memory_request_bytes(self) -> int | None:
        return _whole(self.requests.get("memory"))

    @property
    def memory_limit_bytes(self) -> int | None:
        return _whole(self.limits.get("memory"))


def pod_resources(pod_spec: Mapping[str, Any]) -> PodResources:
    """What the pod needs at its worst moment. Raises QuantityError.

    Main containers and native sidecars run together; before them every other init container runs beside the sidecars
    that were started earlier. The larger of these moments counts, for each resource.
    """
    return PodResources(requests=_totals(pod_spec, "requests"), limits=_totals(pod_spec, "limits"))


def _whole(value: Fraction | None) -> int | None:
    return None if value is None else -(-value.numerator // value.denominator)


def _containers(pod_spec: Mapping[str, Any], field: str) -> list[Spec]:
    return [container for container in pod_spec.get(field) or () if isinstance(container, dict)]


def _is_sidecar(init_container: Spec) -> bool:
    return init_container.get("restartPolicy") == "Always"


def _together(pod_spec: Mapping[str, Any]) -> list[Spec]:
    """The containers that run at the same time for the pod's whole life: main ones, then native sidecars."""
    sidecars = [init for init in _containers(pod_spec, "initContainers") if _is_sidecar(init)]
    return [*_containers(pod_spec, "containers"), *sidecars]


def _amounts(container: Spec, kind: Kind) -> dict[str, Fraction]:
    block = (container.get("resources") or {}).get(kind) or {}
    return {name: _amount(name, written) for name, written in block.items() if written is not None}


def _amount(name: str, written: object) -> Fraction:
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise QuantityError(str(written))
    if name == "memory":
        return Fraction(parse_bytes(str(written)))
    return parse_quantity(str(written))


def _totals(pod_spec: Mapping[str, Any], kind: Kind) -> dict[str, Fraction]:
    totals = _sum(_amounts(container, kind) for container in _together(pod_spec))
    started: dict[str, Fraction] = {}
    for init in _containers(pod_spec, "initContainers"):
        moment = _sum([started, _amounts(init, kind)])
        if _is_sidecar(init):
            started = moment
        for name, amount in moment.items():
            totals[name] = max(amount, totals.get(name, amount))
    return totals


def _sum(parts: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def grown_pod_spec(
    pod_spec: Spec,
    record: MemoryRecord,
    *,
    reserved_request_bytes: int | None = None,
    reserved_limit_bytes: int | None = None,
) -> Spec:
    """The submitted spec with its memory grown by the record; the given spec stays as it is.

    Every container is multiplied by the factor. A fixed amount is shared in proportion to requests by the containers
    that run together, the remainder going to the largest; each other init container gets all of it, as it runs before
    them. Containers without a memory value stay without. No moment of the pod needs more than is reserved for it.
    Raises QuantityError.
    """
    grown = copy.deepcopy(pod_spec)
    if record.factor not in (0.0, 1.0):
        for container in (*_containers(grown, "containers"), *_containers(grown, "initContainers")):
            _change(container, lambda size: scaled_down(size, record.factor))
    elif record.static_bytes:
        _share(_together(grown), record.static_bytes)
        _give_to_inits(grown, record.static_bytes)
        before = pod_resources(pod_spec)
        reserved_request_bytes = _least(
            reserved_request_bytes, before.memory_request_bytes, record.static_bytes
        )
        reserved_limit_bytes = _least(reserved_limit_bytes, before.memory_limit_bytes, record.static_bytes)
    _keep_within(grown, "requests", reserved_request_bytes)
    _keep_within(grown, "limits", reserved_limit_bytes)
    return grown


def _least(reserved: int | None, total: int | None, amount: int) -> int | None:
    bounds = [reserved, None if total is None else total + amount]
    return min((bound for bound in bounds if bound is not None), default=None)


def _memory(container: Spec, kind: Kind) -> int | None:
    return _whole(_amounts(container, kind).get("memory"))


def _change(container: Spec, change: Callable[[int], int], kinds: Sequence[Kind] = KINDS) -> None:
    for kind in kinds:
        size = _memory(container, kind)
        if size is not None:
            block = container["resources"][kind]
            block["memory"] = format_like(change(size), str(block["memory"]))


def _share(containers: list[Spec], amount: int) -> None:
    requests = [_memory(container, "requests") or 0 for container in containers]
    total = sum(requests)
    if total == 0:
        return
    shares = [amount * request // total for request in requests]
    shares[requests.index(max(requests))] += amount - sum(shares)
    for container, share in zip(containers, shares, strict=True):
        if share:
            _change(container, share.__add__)


def _give_to_inits(pod_spec: Spec, amount: int) -> None:
    for init in _containers(pod_spec, "initContainers"):
        if not _is_sidecar(init):
            _change(init, amount.__add__)


def _keep_within(pod_spec: Spec, kind: Kind, reserved: int | None) -> None:
    """Take from the largest container, or the init container, what a moment of the pod needs too much."""
    if reserved is None:
        return
    together = [container for container in _together(pod_spec) if _memory(container, kind) is not None]
    if together:
        needed = sum(_memory(container, kind) or 0 for container in together)
        largest = max(together, key=lambda container: _memory(container, kind) or 0)
        _take(largest, kind, needed - reserved)
    started = 0
    for init in _containers(pod_spec, "initContainers"):
        size = _memory(init, kind) or 0
        if _is_sidecar(init):
            started += size
        else:
            _take(init, kind, started + size - reserved)


def _take(container: Spec, kind: Kind, excess: int) -> None:
    if excess > 0:
        _change(container, lambda size: max(size - excess, 0), (kind,))
