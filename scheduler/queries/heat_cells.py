"""The numbers of a heat map: of the worst lines by category, and of all lines together.

Nodes are many. Which of them are worst is asked of their totals; only of these are the categories read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet

from scheduler.filters import RunFilter
from scheduler.models.rollups import (
    FAILURES_BY_HOUR,
    FAILURES_BY_NODE,
    FAILURES_BY_POOL,
    FAILURES_BY_QUEUE,
    TOTALS_BY_NODE,
    RollUp,
)
from scheduler.queries.failed_runs import chosen_runs
from scheduler.queries.rollups import Span, kept, live, rolled_up, rows_of, span_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """What the lines of a heat map are."""

    family: RollUp
    """Knows them by category."""
    name: str
    """The family's column that names a line."""
    executor: str = "''"
    """SQL of whose node it is."""
    order: str = "failures DESC, name"


NODES = Lines(family=FAILURES_BY_NODE, name="node", executor="executor")
POOLS = Lines(family=FAILURES_BY_POOL, name="pool")
QUEUES = Lines(family=FAILURES_BY_QUEUE, name="queue")
HOURS = Lines(family=FAILURES_BY_HOUR, name="hour", order="name DESC")


class Cell(NamedTuple):
    """Failures of a category: of a line or, as turn 0, of all lines."""

    turn: int
    name: str | datetime
    """Of lines only."""
    executor: str
    category: str
    failures: int
    core_seconds: float
    lines: int
    """With turn 0: how many lines there are, shown or not."""


def heat_cells(wanted: RunFilter, lines: Lines, span: Span, limit: int) -> list[Cell]:
    """The cells of the first lines, and the totals, in any order. In one query, and so of one moment."""
    if not wanted:
        source = _of_nodes() if lines is NODES else _of_all(rolled_up(lines.family), lines)
        return _cells(source, lines, limit, span.parameters)
    try:
        chosen, parameters = chosen_runs(wanted, span)
    except EmptyResultSet:  # the filter contradicts itself
        return []
    found = lines.family.each("%s", "%s", besides=f"r.id IN ({chosen})")
    source = _of_all(f"found AS ({found})", lines)
    return _cells(source, lines, limit, [*span.parameters.values(), *parameters])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """SQL of where the numbers are."""

    line: str
    """For a WITH clause: ends with `line`, which has all of them with their failures."""
    cells: str
    """Of those that are `shown`, by turn and category."""
    totals: str
    """Of all lines, by category."""


# Asked for an order, the database would sort all that is found.
_ANSWER = """
    WITH {line}, shown AS MATERIALIZED (
        SELECT name, executor, row_number() OVER (ORDER BY {order}, executor) AS turn
          FROM (SELECT * FROM line ORDER BY {order}, executor LIMIT {limit}) AS first
    ), cell AS ({cells}), total AS ({totals})
    SELECT turn, name, executor, category, cell.failures, cell.core_seconds, 0 FROM shown JOIN cell USING (turn)
     UNION ALL
    SELECT 0, NULL, '', category, failures, core_seconds, (SELECT count(*) FROM line) FROM total
"""


def _cells(
    source: _Source, lines: Lines, limit: int, parameters: Mapping[str, Any] | Sequence[Any]
) -> list[Cell]:
    answer = _ANSWER.format(
        line=source.line, cells=source.cells, totals=source.totals, order=lines.order, limit=limit
    )
    return [Cell(*row) for row in rows_of(answer, parameters)]


# A count of one bucket is no large number, and adding up such takes half as long.
_ALL = """
    , part AS MATERIALIZED (
        SELECT {name} AS name, {executor} AS executor, category, sum(failures::int) AS failures, sum(core_seconds) AS core_seconds
          FROM found GROUP BY 1, 2, 3
    ), line AS MATERIALIZED (SELECT name, executor, sum(failures)::bigint AS failures FROM part GROUP BY 1, 2)
"""


def _of_all(found: str, lines: Lines) -> _Source:
    """Everything `found`, looked at once, line by line and category by category."""
    return _Source(
        line=found + _ALL.format(name=lines.name, executor=lines.executor),
        cells="SELECT turn, category, failures, core_seconds FROM shown JOIN part USING (name, executor)",
        totals="SELECT category, sum(failures)::bigint AS failures, sum(core_seconds) AS core_seconds FROM part GROUP BY 1",
    )


# What is live is read once for all three. A node may have been of several pools, or executors.
_NODES = """
    {span}, live AS MATERIALIZED (
        SELECT pool, executor, node, category, failures, core_seconds FROM ({live}) AS recorded
    ), pools AS MATERIALIZED ({pools}),
    part AS MATERIALIZED (
        SELECT pool, executor, node, sum(failures::int) AS failures
          FROM (SELECT pool, executor, node, failures FROM ({nodes}) AS kept
                 UNION ALL SELECT pool, executor, node, failures FROM live) AS found
      GROUP BY 1, 2, 3
    ), line AS MATERIALIZED (
        SELECT node AS name, executor, sum(failures)::bigint AS failures FROM part GROUP BY 1, 2
    )
"""
# The days of a node are looked up one by one: OFFSET 0 keeps the database from joining those of all nodes first.
_CELLS_OF_NODES = """
    SELECT turn, category, sum(failures::int) AS failures, sum(core_seconds) AS core_seconds
      FROM (SELECT turn, known.category, known.failures, known.core_seconds
              FROM (SELECT turn, pool, name, shown.executor
                      FROM shown JOIN part ON part.node = name AND part.executor = shown.executor OFFSET 0) AS place
              JOIN (SELECT DISTINCT day, pool FROM pools) AS days USING (pool)
              CROSS JOIN LATERAL (
                   SELECT category, failures, core_seconds FROM {by_category} AS known
                    WHERE known.day = days.day AND known.pool = place.pool
                      AND known.executor = place.executor AND known.node = place.name OFFSET 0) AS known
             UNION ALL
            SELECT turn, category, live.failures, live.core_seconds
              FROM shown JOIN live ON live.node = shown.name AND live.executor = shown.executor) AS cells
  GROUP BY 1, 2
"""
_TOTALS_OF_NODES = """
    SELECT category, sum(failures::int) AS failures, sum(core_seconds) AS core_seconds
      FROM (SELECT category, failures, core_seconds FROM pools
             UNION ALL SELECT category, failures, core_seconds FROM live) AS found
  GROUP BY 1
"""


def _of_nodes() -> _Source:
    """Lines from the totals of nodes, categories of a few from their days, and all together from the pools."""
    return _Source(
        line=_NODES.format(
            span=span_of(FAILURES_BY_NODE), live=live(FAILURES_BY_NODE.each),
            nodes=kept(TOTALS_BY_NODE), pools=kept(FAILURES_BY_POOL),
        ),
        cells=_CELLS_OF_NODES.format(by_category=FAILURES_BY_NODE.table),
        totals=_TOTALS_OF_NODES,
    )  # fmt: skip
