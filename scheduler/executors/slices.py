"""Declared slices of a machine: what each node of the local executor is said to have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.executors.protocol import TaintDescription


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """One node. Nothing is reserved on the machine: placement counts with these."""

    cpu_millicores: int = 0
    """0: as much as the executor gives each of its nodes."""
    memory_bytes: int = 0
    """0: as for CPU."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Besides the one that tells nodes apart."""
    taints: Sequence[TaintDescription] = ()
    resources: Mapping[str, int] = field(default_factory=dict)
    """Other resources by their Kubernetes names, in whole units."""
