"""Grow the memory of a job that runs again: what is reserved for it, and what its containers are given.

The record is the total change since submission, so a pod is always rewritten from what was submitted. Factors multiply
as doubles; results are whole bytes of any size: rounded up where reserved, down where given, so that a pod never
needs more than its reservation.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from policies.policy import MemoryBump
from policies.quantity import MAX_QUANTITY

__all__ = ["Growth", "MemoryRecord", "grow", "scaled_down", "scaled_up"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRecord:
    """How much a job has grown since submission, by one kind only: times a factor, or by an amount. 0 is none."""

    factor: float = 0.0
    static_bytes: int = 0

    def __bool__(self) -> bool:
        return self.factor not in (0.0, 1.0) or self.static_bytes != 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """What a bump made of a job's memory. Not applied: the job has grown by the other kind before, all stays."""

    applied: bool
    record: MemoryRecord
    request_bytes: int | None
    limit_bytes: int | None

    @property
    def exceeds_any_node(self) -> bool:
        """Beyond what Kubernetes and a database column can hold: treat as unschedulable, do not store."""
        return max(self.request_bytes or 0, self.limit_bytes or 0) > MAX_QUANTITY


def grow(
    record: MemoryRecord, bump: MemoryBump, request_bytes: int | None, limit_bytes: int | None
) -> Growth:
    """Grow what is reserved by one bump. A job grows by one kind: a bump of the other kind is skipped."""
    unchanged = Growth(applied=False, record=record, request_bytes=request_bytes, limit_bytes=limit_bytes)
    if bump.static:
        return unchanged if record.factor else _grown_by_amount(unchanged, bump.static_bytes)
    if bump.factor:
        return unchanged if record.static_bytes else _grown_by_factor(unchanged, bump.factor)
    return unchanged


def _grown_by_amount(before: Growth, amount: int) -> Growth:
    def grown(size: int | None) -> int | None:
        return None if size is None else size + amount

    return Growth(
        applied=True,
        record=MemoryRecord(static_bytes=min(before.record.static_bytes + amount, MAX_QUANTITY)),
        request_bytes=grown(before.request_bytes),
        limit_bytes=grown(before.limit_bytes),
    )


def _grown_by_factor(before: Growth, factor: float) -> Growth:
    def grown(size: int | None) -> int | None:
        return None if size is None else scaled_up(size, factor)

    product = (before.record.factor or 1.0) * factor
    return Growth(
        applied=True,
        record=MemoryRecord(factor=min(product, sys.float_info.max)),
        request_bytes=grown(before.request_bytes),
        limit_bytes=grown(before.limit_bytes),
    )


def scaled_up(size: int, factor: float) -> int:
    """Size times a factor above 1, rounded up; never less than the size."""
    return max(size, math.ceil(_product(size, factor)))


def scaled_down(size: int, factor: float) -> int:
    """Size times a factor above 1, rounded down; never less than the size."""
    return max(size, math.floor(_product(size, factor)))


def _product(size: int, factor: float) -> float:
    try:
        return min(size * factor, sys.float_info.max)
    except OverflowError:  # the size alone is beyond a double
        return sys.float_info.max
