"""The order of a list, in plain Python over plain values: written apart from the SQL, to compare it with."""

from collections.abc import Iterable
from functools import cmp_to_key
from typing import Any

from scheduler.filters import Order
from tests.scheduler.history_rows import PlainJob, PlainRun

OWN = {"jobs": "id", "runs": "id", "decisions": "run"}
"""The key that no two of them share."""


def in_order[T: PlainJob | PlainRun](rows: Iterable[T], order: Order, things: str) -> list[T]:
    """The rows in their order: what has no value comes last, what is equal goes by its own key, the way of the last one."""
    keys = [*((key.name, key.descending) for key in order), (OWN[things], order[-1].descending)]

    def compared(one: T, other: T) -> int:
        signs = (_sign(one.values[name], other.values[name], descending) for name, descending in keys)
        return next((sign for sign in signs if sign), 0)

    return sorted(rows, key=cmp_to_key(compared))


def _sign(one: Any, other: Any, descending: bool) -> int:
    if one is None or other is None:
        return int(one is None) - int(other is None)
    sign = int(one > other) - int(one < other)
    return -sign if descending else sign
