"""The heads of the columns of the list of jobs: what they are called, and the order each leads to."""

from collections.abc import Sequence
from dataclasses import dataclass

from lookout.pages.bar import jobs_address
from scheduler.filters import Order, Pair, SortKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """The head of a column."""

    label: str
    classes: str
    address: str
    """The list in the order of this column, the other way when it is in that order already; empty for none."""
    way: str
    """ascending, descending, or empty: how the list is ordered by this column."""


_COLUMNS = (
    ("State", "", "state"), ("Job", "", "id"), ("Job set", "p2", "jobSet"), ("Runs", "p2", "-runs"),
    ("Last failure", "p2", ""), ("Verdict", "p2", ""), ("Retries", "p3 n", ""), ("Memory", "p3", "-memory"),
    ("Node", "p3", ""), ("Exit", "p3 n", ""), ("Ran", "p3 n", ""), ("Submitted", "n", "-submitted"),
    ("In state", "p3 n", "-stateChanged"),
)  # fmt: skip
"""Label, classes, and the order that the first click leads to."""
_CALLED = {
    "submitted": ("oldest first", "newest first"),
    "stateChanged": ("longest in their state first", "last changed first"),
}


def headings(order: Order, filters: Sequence[Pair]) -> list[Heading]:
    """The heads of the columns, for a list with these filters in this order."""
    return [
        Heading(
            label=label,
            classes=classes,
            address=jobs_address(filters, sort=_next(order, first)) if first else "",
            way=_way(order[0], first.removeprefix("-")) if first else "",
        )
        for label, classes, first in _COLUMNS
    ]


def order_in_words(order: Order) -> str:
    """How the list is ordered: newest first, by queue, by runs from the most."""
    key = order[0]
    if key.name in _CALLED:
        return _CALLED[key.name][key.descending]
    return ", ".join(f"by {key.name}{', descending' if key.descending else ''}" for key in order)


def _way(key: SortKey, name: str) -> str:
    if key.name != name:
        return ""
    return "descending" if key.descending else "ascending"


def _next(order: Order, first: str) -> str:
    key = SortKey(name=first.removeprefix("-"), descending=first.startswith("-"))
    return str(SortKey(name=key.name, descending=not key.descending) if key == order[0] else key)
