"""Where failures happen: category by node, pool, queue or hour, worst first and the rest as one."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from operator import itemgetter
from typing import Any

from django.core.exceptions import EmptyResultSet

from scheduler.errors import Invalid
from scheduler.filters import RunFilter
from scheduler.models.rollups import FAILURES_BY_HOUR, FAILURES_BY_NODE, FAILURES_BY_QUEUE, RollUp
from scheduler.queries.failed_runs import NARROW, chosen_runs
from scheduler.queries.patience import within
from scheduler.queries.rollups import Span, rolled_up, rows_of

MOST_ROWS = 1_000


class Across(StrEnum):
    """What failures are told apart by, besides their category."""

    NODE = "node"
    POOL = "pool"
    QUEUE = "queue"
    HOUR = "hour"


_FAMILIES: dict[Across, tuple[RollUp, str, str]] = {
    Across.NODE: (FAILURES_BY_NODE, "node", "found.executor"),
    Across.POOL: (FAILURES_BY_NODE, "pool", "''"),
    Across.QUEUE: (FAILURES_BY_QUEUE, "queue", "''"),
    Across.HOUR: (FAILURES_BY_HOUR, "hour", "''"),
}
"""The family that knows it, the name of a row, and whose node that is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatRow:
    """Failed runs of one node, pool, queue or hour."""

    name: str | datetime
    executor: str
    """Of a node."""
    failures: int
    core_seconds: float
    """Spent by these runs."""
    by_category: dict[str, int]
    """Only categories that there are; "" is a failure without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatMap:
    """Failed runs by row and category."""

    categories: tuple[str, ...]
    """The most frequent first."""
    rows: tuple[HeatRow, ...]
    """Worst first; hours as they followed each other."""
    others: HeatRow | None
    """What did not come into the rows, as one. Its name tells how many they are."""


def heat_map(wanted: RunFilter, across: Across, span: Span, *, limit: int = 50) -> HeatMap:
    """Failed runs that were recorded in a span, by category and what they are told apart by, in one query.

    Of hours the last are shown. Without a filter the answer comes from roll-ups. Raises Invalid, and TooMuchAsked
    when the database cannot answer in time.
    """
    if not 1 <= limit <= MOST_ROWS:
        raise Invalid(f"limit takes a number from 1 to {MOST_ROWS:,}.", path="limit")
    with within(narrow=NARROW):
        return _heat_map(_cells(wanted, across, span, limit), across, limit)


# What is found goes into few cells at once: those of the lines that are shown, and of all others as one. A count of one
# bucket is no large number, and adding up such takes half as long.
_CELLS = """
    , line AS MATERIALIZED (
        SELECT {name} AS name, {executor} AS executor, sum(failures::int) AS failures FROM found GROUP BY 1, 2
    ), shown AS MATERIALIZED (
        SELECT name, executor, row_number() OVER (ORDER BY {order}, executor) AS turn
          FROM line ORDER BY {order}, executor LIMIT {limit}
    )
    SELECT coalesce(turn, {limit} + 1) AS turn, min(shown.name), min(shown.executor), category, sum(failures::int),
           sum(core_seconds), (SELECT count(*) FROM line)
      FROM found LEFT JOIN shown ON shown.name = found.{name} AND shown.executor = {executor}
  GROUP BY 1, category
"""


def _cells(wanted: RunFilter, across: Across, span: Span, limit: int) -> Sequence[tuple[Any, ...]]:
    family, name, executor = _FAMILIES[across]
    order = "name DESC" if across is Across.HOUR else "failures DESC, name"
    cells = _CELLS.format(name=name, executor=executor, order=order, limit=limit)
    if not wanted:
        return rows_of(f"WITH {rolled_up(family)} {cells}", span.parameters)
    try:
        chosen, parameters = chosen_runs(wanted, span)
    except EmptyResultSet:  # the filter contradicts itself
        return []
    found = family.counted("%s", "%s", besides=f"r.id IN ({chosen})")
    return rows_of(f"WITH found AS ({found}) {cells}", [*span.parameters.values(), *parameters])


_TURN_AND_CATEGORY = itemgetter(0, 3)
"""The order of cells. Asked for an order, the database would sort everything that is found."""


def _heat_map(cells: Sequence[tuple[Any, ...]], across: Across, limit: int) -> HeatMap:
    by_turn: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    by_category: dict[str, int] = defaultdict(int)
    for turn, *cell, lines in sorted(cells, key=_TURN_AND_CATEGORY):
        by_turn[turn].append((*cell, lines))
        by_category[cell[2]] += cell[3]
    others = by_turn.pop(limit + 1, None)
    rows = [_row(cells) for cells in by_turn.values()]
    return HeatMap(
        categories=tuple(sorted(by_category, key=lambda name: (-by_category[name], name))),
        rows=tuple(reversed(rows) if across is Across.HOUR else rows),
        others=_others(others, limit) if others else None,
    )


def _row(cells: Sequence[tuple[Any, ...]]) -> HeatRow:
    name, executor, *_ = cells[0]
    return HeatRow(
        name=name,
        executor=executor,
        failures=sum(failures for _, _, _, failures, *_ in cells),
        core_seconds=sum(seconds for *_, seconds, _ in cells),
        by_category={category: failures for _, _, category, failures, *_ in cells},
    )


def _others(cells: Sequence[tuple[Any, ...]], limit: int) -> HeatRow:
    *_, lines = cells[0]
    return replace(_row(cells), name=str(lines - limit), executor="")
