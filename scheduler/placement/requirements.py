"""Requirements: what a job asks of a node, equal for jobs that fit the same nodes."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from scheduler.placement.labels import Affinity, Toleration, affinity_of, tolerations_of


class Asking(Protocol):
    """What of a job says where it fits."""

    @property
    def cpu_request_millicores(self) -> int: ...
    @property
    def memory_request_bytes(self) -> int | None: ...
    @property
    def memory_limit_bytes(self) -> int | None: ...
    @property
    def resources(self) -> Mapping[str, int]: ...
    @property
    def node_selector(self) -> Mapping[str, str]: ...
    @property
    def affinity(self) -> Sequence[Sequence[Mapping[str, Any]]]: ...
    @property
    def tolerations(self) -> Sequence[Mapping[str, str]]: ...
    @property
    def avoided_nodes(self) -> Collection[str]: ...
    @property
    def needed_fields(self) -> Collection[str]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirements:
    """What a job asks of a node. Equal requirements fit the same nodes, so they are looked at once."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    """Other resources by name, in whole units, sorted."""
    node_selector: tuple[tuple[str, str], ...] = ()
    """Labels a node must carry, sorted."""
    affinity: Affinity = ()
    """What else its labels must meet, sorted: any of the terms, with all of its expressions."""
    tolerations: tuple[Toleration, ...] = ()
    """Sorted."""
    avoided_nodes: tuple[str, ...] = ()
    """Values of the node id label that are ruled out, sorted: a NotIn in every term of the affinity."""
    needed_fields: tuple[str, ...] = ()
    """Fields of the pod spec that not every executor acts on, sorted: those go where somebody does."""

    @classmethod
    def of(cls, job: Asking) -> Self:
        """What a queued job reserves and where it may go."""
        return cls.from_amounts(
            cpu_millicores=job.cpu_request_millicores,
            memory_bytes=reserved_memory(request=job.memory_request_bytes, limit=job.memory_limit_bytes),
            resources=job.resources,
            node_selector=job.node_selector,
            affinity=job.affinity,
            tolerations=job.tolerations,
            avoided_nodes=job.avoided_nodes,
            needed_fields=job.needed_fields,
        )

    @classmethod
    def from_amounts(
        cls,
        *,
        cpu_millicores: int,
        memory_bytes: int,
        resources: Mapping[str, int],
        node_selector: Mapping[str, str],
        affinity: Iterable[Iterable[Mapping[str, Any]]] = (),
        tolerations: Iterable[Mapping[str, str]] = (),
        avoided_nodes: Iterable[str],
        needed_fields: Iterable[str] = (),
    ) -> Self:
        """What a job asks, from its fields as they are stored, in any order: equal jobs get equal requirements."""
        return cls(
            cpu_millicores=cpu_millicores,
            memory_bytes=memory_bytes,
            resources=tuple(sorted((name, amount) for name, amount in resources.items() if amount)),
            node_selector=tuple(sorted(node_selector.items())),
            affinity=affinity_of(affinity),
            tolerations=tolerations_of(tolerations),
            avoided_nodes=tuple(sorted(set(avoided_nodes))),
            needed_fields=tuple(sorted(set(needed_fields))),
        )

    @property
    def key(self) -> str:
        """The same 16 characters for equal requirements, in every process and every version of Tack."""
        shape: list[object] = [
            self.cpu_millicores,
            self.memory_bytes,
            self.resources,
            self.node_selector,
            self.avoided_nodes,
        ]
        if self.affinity or self.tolerations:
            # Requirements without them keep the key they had before there were any.
            shape += [self.affinity, self.tolerations]
        if self.needed_fields:
            shape.append(self.needed_fields)
        text = json.dumps(shape, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def reserved_memory(*, request: int | None, limit: int | None) -> int:
    """Bytes a job reserves: it may use up to its limit, so the limit counts wherever it is the larger."""
    return max(request or 0, limit or 0)
