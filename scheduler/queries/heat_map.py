"""Where failures happen: category by node, pool, queue or hour, worst first and the rest as one."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from scheduler.errors import Invalid
from scheduler.filters import RunFilter
from scheduler.queries.failed_runs import NARROW
from scheduler.queries.heat_cells import HOURS, NODES, POOLS, QUEUES, Cell, Lines, heat_cells
from scheduler.queries.patience import within
from scheduler.queries.rollups import Span

MOST_ROWS = 1_000


class Across(StrEnum):
    """What failures are told apart by, besides their category."""

    NODE = "node"
    POOL = "pool"
    QUEUE = "queue"
    HOUR = "hour"


_LINES: dict[Across, Lines] = {
    Across.NODE: NODES,
    Across.POOL: POOLS,
    Across.QUEUE: QUEUES,
    Across.HOUR: HOURS,
}


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
    with within(narrow=NARROW, parallel=True):
        cells = heat_cells(wanted, _LINES[across], span, limit)
    totals, *lines = _by_turn(cells) or [[]]
    by_category = {total.category: total.failures for total in totals}
    rows = [_row(line) for line in lines]
    return HeatMap(
        categories=tuple(sorted(by_category, key=lambda name: (-by_category[name], name))),
        rows=tuple(reversed(rows) if across is Across.HOUR else rows),
        others=_others(totals, [cell for line in lines for cell in line], limit),
    )


def _by_turn(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Totals and then the lines, the worst first, each by category."""
    by_turn: dict[int, list[Cell]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.turn, cell.category)):
        by_turn[cell.turn].append(cell)
    return list(by_turn.values())


def _row(line: Sequence[Cell]) -> HeatRow:
    return HeatRow(
        name=line[0].name,
        executor=line[0].executor,
        failures=sum(cell.failures for cell in line),
        core_seconds=sum(cell.core_seconds for cell in line),
        by_category={cell.category: cell.failures for cell in line},
    )


def _others(totals: Sequence[Cell], shown: Sequence[Cell], limit: int) -> HeatRow | None:
    """What the totals have that is not shown. Of a category without such failures what differs is rounding."""
    if not totals or totals[0].lines <= limit:
        return None
    failures: dict[str, int] = defaultdict(int)
    core_seconds: dict[str, float] = defaultdict(float)
    for cell in shown:
        failures[cell.category] += cell.failures
        core_seconds[cell.category] += cell.core_seconds
    rest = [total for total in totals if total.failures > failures[total.category]]
    return HeatRow(
        name=str(totals[0].lines - limit),
        executor="",
        failures=sum(total.failures - failures[total.category] for total in rest),
        core_seconds=sum(max(0.0, total.core_seconds - core_seconds[total.category]) for total in rest),
        by_category={total.category: total.failures - failures[total.category] for total in rest},
    )
