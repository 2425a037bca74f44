"""Add up the past: hours that nothing can be recorded in any more, and jobs that have ended."""

import time
from datetime import datetime, timedelta

from django.db import transaction

from scheduler.models import HistoryMark
from scheduler.models.rollups import FAMILIES, count_jobs, next_recorded

HOUR = timedelta(hours=1)
MOST_JOBS = 100_000
"""Counted in one transaction, in about half a second."""
PATIENCE_SECONDS = 2.0
"""After so long nothing more is begun; the next time goes on."""


def roll_up(*, seconds: float = PATIENCE_SECONDS, waits: bool = False) -> bool:
    """Close every hour that is over, and count the jobs whose end was recorded since the last time.

    Each step is a transaction, so that an end at any moment loses nothing and counts nothing twice. Returns
    whether there is more to do than there was time for. Where somebody else is at it, there is nothing to do; or one
    waits for their step to end.
    """
    until = time.monotonic() + seconds
    while close_next_hour(waits=waits) or count_ended_jobs(waits=waits):
        if time.monotonic() > until:
            return True
    return False


@transaction.atomic
def close_next_hour(*, waits: bool = False) -> bool:
    """Add up the first hour that is over and not closed; hours without anything close with it. Whether there was one.

    An hour is over when no transaction is open that began before its end: whatever was to be recorded in it is
    there, in the snapshot of the statements that follow.
    """
    mark = HistoryMark.objects.take(waits=waits)
    if mark is None:
        return False
    over = hour_of(HistoryMark.objects.over_until())
    first = next_recorded(mark.closed_until)
    if first is None or hour_of(first) >= over:
        _close(mark, over)
        return False
    for family in FAMILIES:
        family.add(hour_of(first), hour_of(first) + HOUR)
    _close(mark, hour_of(first) + HOUR)
    return True


@transaction.atomic
def count_ended_jobs(*, waits: bool = False) -> bool:
    """Add jobs to the totals, those first whose end was recorded first. Whether some are left."""
    mark = HistoryMark.objects.take(waits=waits)
    if mark is None:
        return False
    over = HistoryMark.objects.over_until()
    reached = count_jobs(mark.counted_until, over, most=MOST_JOBS)
    mark.counted_until = max(mark.counted_until, reached)
    mark.save(update_fields=["counted_until"])
    return reached < over


def hour_of(moment: datetime) -> datetime:
    """The full hour at or before a moment."""
    return moment.replace(minute=0, second=0, microsecond=0)


def _close(mark: HistoryMark, until: datetime) -> None:
    if until > mark.closed_until:
        mark.closed_until = until
        mark.save(update_fields=["closed_until"])
