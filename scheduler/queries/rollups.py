"""Read roll-ups: closed buckets from their tables, and whatever of a span lies outside of them counted as it is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from scheduler.models.rollups import RollUp


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A span of recording; None is open to that side."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def parameters(self) -> dict[str, object]:
        return {"since": self.since or "-infinity", "until": self.until or "infinity"}


# One statement, so one snapshot: no hour closes between the look at the mark and the look at the rows. Rolled up is
# what lies in [first, rest); live are [since, first) and [rest, until).
_SPAN = """
    span AS MATERIALIZED (
        SELECT since, until, mark, first,
               greatest(first, CASE WHEN mark <= until THEN mark ELSE date_trunc('{unit}', until, 'UTC') END) AS rest
          FROM (SELECT since, until, mark, least(until,
                       CASE WHEN whole < since THEN whole + interval '1 {unit}' ELSE since END) AS first
                  FROM (SELECT since, until, date_trunc('{unit}', since, 'UTC') AS whole,
                               coalesce((SELECT closed_until FROM scheduler_historymark), 'epoch') AS mark
                          FROM (SELECT %(since)s::timestamptz AS since, %(until)s::timestamptz AS until) AS asked
                       ) AS known
               ) AS aligned
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
    parts = "\n UNION ALL ".join(part for family in families for part in _parts(family))
    by_hour = families[0].by_hour
    span = _SPAN.format(unit="hour") + _DAYS if by_hour else _SPAN.format(unit=families[0].unit)
    return f"{span}, found AS ({parts})"


def _parts(family: RollUp) -> tuple[str, ...]:
    """SQL of what is rolled up, of what was recorded before, and of the rest."""
    before = family.counted("(SELECT since FROM span)", "(SELECT first FROM span)")
    rest = family.counted("(SELECT rest FROM span)", "(SELECT until FROM span)")
    live = (f"({before})", f"({rest})")
    if family.by_hour is None:
        return _kept(family, "(SELECT first FROM span)", "(SELECT rest FROM span)"), *live
    return (
        _kept(family, "(SELECT first FROM days)", "(SELECT rest FROM days)"),
        _kept(family.by_hour, "(SELECT first FROM span)", "(SELECT first FROM days)"),
        _kept(family.by_hour, "(SELECT rest FROM days)", "(SELECT rest FROM span)"),
        *live,
    )


def _kept(family: RollUp, begin: str, end: str) -> str:
    return f"{family.kept} AND {family.unit} >= {begin} AND {family.unit} < {end}"


def rows_of(sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
        return rows
