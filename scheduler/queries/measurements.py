"""What there is to measure at this moment, for whoever watches Tack from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from scheduler.config import Configuration
from scheduler.metrics import Count
from scheduler.models import Counter

# By the index of what is to be settled: it costs no more than there is.
_AWAITING = """
    SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(ended_at)), 0)
      FROM scheduler_run WHERE ended_at IS NOT NULL AND settled_at IS NULL AND settle_error = ''
"""
_HEARTBEATS = """
    SELECT name, pool_id, extract(epoch FROM clock_timestamp() - heartbeat_at)
      FROM scheduler_executor WHERE heartbeat_at IS NOT NULL ORDER BY name
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """How long ago an executor was heard of."""

    executor: str
    pool: str
    age_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurements:
    """Everything that is exposed, as it was at one moment."""

    totals: Sequence[tuple[Count, float]]
    runs_awaiting_decision: int
    oldest_seconds: float
    """Since the oldest of them ended; 0 where none waits."""
    heartbeats: Sequence[Heartbeat]


def measure(*, config: Configuration) -> Measurements:
    """Measure everything, in three queries."""
    runs, oldest = _rows(_AWAITING)[0]
    return Measurements(
        totals=Counter.objects.totals(reset_every_seconds=config.metrics_reset_seconds),
        runs_awaiting_decision=runs,
        oldest_seconds=max(0.0, float(oldest)),
        heartbeats=[
            Heartbeat(executor=name, pool=pool, age_seconds=max(0.0, float(age)))
            for name, pool, age in _rows(_HEARTBEATS)
        ],
    )


def _rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
