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
        SELECT since, until, first,
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


def rolled_up(family: RollUp) -> str:
    """SQL for a WITH clause: `found` has the family's rows of a span, with its bucket; some keys in several rows.

    The statement takes the parameters of a `Span`.
    """
    columns = ", ".join([family.unit, *family.keys, *family.measures])
    begin = family.counted("(SELECT since FROM span)", "(SELECT first FROM span)", bucket=family.unit)
    rest = family.counted("(SELECT rest FROM span)", "(SELECT until FROM span)", bucket=family.unit)
    return f"""
    {_SPAN.format(unit=family.unit)},
    found AS (
        SELECT {columns} FROM {family.table}
         WHERE {family.unit} >= (SELECT first FROM span) AND {family.unit} < (SELECT rest FROM span)
     UNION ALL ({begin})
     UNION ALL ({rest})
    )
    """  # noqa: S608 - the names stand with the families


def rows_of(sql: str, parameters: Mapping[str, object]) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()
