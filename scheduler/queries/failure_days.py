"""Failures day by day, by category and subcategory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import EmptyResultSet

from scheduler.filters import RunFilter
from scheduler.models.rollups import FAILURES_BY_DAY
from scheduler.queries.failed_runs import NARROW, chosen_runs
from scheduler.queries.patience import within
from scheduler.queries.rollups import Span, rolled_up, rows_of


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureDayRow:
    """Failed runs of one day, in UTC, that have category and subcategory in common."""

    day: datetime
    category: str
    subcategory: str
    failures: int
    core_seconds: float


def failure_days(wanted: RunFilter, span: Span) -> tuple[FailureDayRow, ...]:
    """Failed runs that were recorded in a span, newest day first, in one query. Without a filter from roll-ups.

    Raises TooMuchAsked when the database cannot answer in time.
    """
    with within(narrow=NARROW, parallel=True):
        rows = _rows(wanted, span)
    found: dict[tuple[datetime, str, str], FailureDayRow] = {}
    for day, category, subcategory, failures, core_seconds in rows:
        known = found.get((day, category, subcategory))
        found[day, category, subcategory] = FailureDayRow(
            day=day,
            category=category,
            subcategory=subcategory,
            failures=failures + (known.failures if known else 0),
            core_seconds=core_seconds + (known.core_seconds if known else 0.0),
        )
    return tuple(sorted(found.values(), key=_newest_and_worst_first))


def _newest_and_worst_first(row: FailureDayRow) -> tuple[float, int, str, str]:
    return -row.day.timestamp(), -row.failures, row.category, row.subcategory


# Added up here: the days of a span are closed but for one or two, and to group them all again takes longest of all.
_FOUND = "SELECT day, category, subcategory, failures, core_seconds FROM found"


def _rows(wanted: RunFilter, span: Span) -> Sequence[tuple[Any, ...]]:
    if not wanted:
        return rows_of(f"WITH {rolled_up(FAILURES_BY_DAY)} {_FOUND}", span.parameters)
    try:
        chosen, parameters = chosen_runs(wanted, span)
    except EmptyResultSet:  # the filter contradicts itself
        return []
    found = FAILURES_BY_DAY.counted("%s", "%s", besides=f"r.id IN ({chosen})")
    return rows_of(f"WITH found AS ({found}) {_FOUND}", [*span.parameters.values(), *parameters])
