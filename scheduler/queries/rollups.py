"""Read roll-ups: closed buckets from their tables, and whatever of a span lies outside of them counted as it is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from scheduler.models.rollups import RollUp


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A span of recording; None is open to that side. Where jobs are gone roll-ups answer by whole buckets."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def parameters(self) -> dict[str, object]:
        return {"since": self.since or "-infinity", "until": self.until or "infinity"}


# One statement, so one snapshot: no hour closes between the look at the marks and the look at the rows. Rolled up is
# what lies in [first, rest); live are [since, first) and [rest, until). Where retention has been there is nothing left
# to count live: a span that begins or ends there takes in the whole of the bucket.
_SPAN = """
    asked AS (
        SELECT since, until, since < until AS lasts, coalesce(mark.closed_until, 'epoch') AS mark, coalesce(mark.jobs_until, 'epoch') AS gone
          FROM (SELECT %(since)s::timestamptz AS since, %(until)s::timestamptz AS until) AS given
          LEFT JOIN scheduler_historymark AS mark ON true
    ), whole AS (
        SELECT CASE WHEN lasts AND since < gone THEN date_trunc('{unit}', since, 'UTC') ELSE since END AS since,
               CASE WHEN lasts AND until < mark AND date_trunc('{unit}', until, 'UTC') < least(until, gone)
                    THEN date_trunc('{unit}', until, 'UTC') + interval '1 {unit}' ELSE until END AS until, mark
          FROM asked
    ), span AS MATERIALIZED (
        SELECT since, until, mark, first,
               greatest(first, CASE WHEN mark <= until THEN mark ELSE date_trunc('{unit}', until, 'UTC') END) AS rest
          FROM (SELECT since, until, mark, least(until, CASE WHEN date_trunc('{unit}', since, 'UTC') < since
                       THEN date_trunc('{unit}', since, 'UTC') + interval '1 {unit}' ELSE since END) AS first
                  FROM whole) AS aligned
    )
"""
# Of what is rolled up by the hour, [first, rest) is rolled up by the day as well.
_DAYS = """
    , days AS MATERIALIZED (
        SELECT first, greatest(first, CASE WHEN mark <= until THEN whole ELSE date_trunc('day', until, 'UTC') END) AS rest
          FROM (SELECT mark, until, rest AS whole, least(rest, CASE WHEN date_trunc('day', first, 'UTC') < first
                       THEN date_trunc('day', first, 'UTC') + interval '1 day' ELSE first END) AS first FROM span) AS aligned
    )
"""


def rolled_up(*families: RollUp) -> str:
    """SQL for a WITH clause: `found` has the rows of a span of families alike; what is equal may come in several.

    The statement takes the parameters of a `Span`.
    """
    parts = "\n UNION ALL ".join(
        part for family in families for part in (*_closed(family), live(family.counted))
    )
    return f"{span_of(families[0])}, found AS ({parts})"


def span_of(family: RollUp) -> str:
    """SQL for a WITH clause: the `span`, and where in it what is rolled up of a family begins and ends."""
    return _SPAN.format(unit="hour") + _DAYS if family.by_hour else _SPAN.format(unit=family.unit)


def live(recorded: Callable[[str, str], str]) -> str:
    """SQL of what of a span is not rolled up: what was recorded before whole buckets, and the rest."""
    before = recorded(_moment("span.since"), _moment("span.first"))
    rest = recorded(_moment("span.rest"), _moment("span.until"))
    return f"({before}) UNION ALL ({rest})"


def kept(family: RollUp) -> str:
    """SQL of what of a span is rolled up, of a family that has no hours."""
    return _between(family, "span.first", "span.rest")


def _closed(family: RollUp) -> tuple[str, ...]:
    """SQL of what is rolled up: by the day, and by the hour where that is finer."""
    if family.by_hour is None:
        return (kept(family),)
    return (
        _between(family, "days.first", "days.rest"),
        _between(family.by_hour, "span.first", "days.first"),
        _between(family.by_hour, "days.rest", "span.rest"),
    )


def _between(family: RollUp, begin: str, end: str) -> str:
    return f"{family.kept} AND {family.unit} >= {_moment(begin)} AND {family.unit} < {_moment(end)}"


def _moment(told: str) -> str:
    """SQL of one moment of `span` or `days`, to compare an index with."""
    table, column = told.split(".")
    return f"(SELECT {column} FROM {table})"  # noqa: S608 - the names stand above


def rows_of(sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
        return rows
