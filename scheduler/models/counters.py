"""Counters: totals that settling adds to, batch by batch, for whoever watches Tack from outside."""

from collections.abc import Mapping, Sequence

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import CompositePrimaryKey

from scheduler.metrics import Count, Metric
from scheduler.models.bulk import json_text
from scheduler.models.checks import one_of

SHARDS = 8
"""A total lies in so many rows, each for some of the sessions: workers side by side seldom want the same one."""

# One statement, its rows in one order, so that no two transactions can wait for each other.
_ADD = f"""
    INSERT INTO scheduler_counter AS old (metric, labels, shard, period, total)
    SELECT new.metric, new.labels, pg_backend_pid() %% {SHARDS}, {{period}}, new.amount
      FROM jsonb_to_recordset(%(amounts)s::jsonb) AS new(metric text, labels text[], amount float8)
  ORDER BY new.metric, new.labels
        ON CONFLICT (metric, labels, shard) DO UPDATE
       SET period = greatest(old.period, excluded.period),
           total = excluded.total + CASE WHEN old.period < excluded.period THEN 0 ELSE old.total END
"""  # noqa: S608 - the number stands above
_TOTALS = """
    SELECT metric, labels, sum(total)
      FROM scheduler_counter WHERE (period >= {period}) IS NOT FALSE GROUP BY 1, 2 ORDER BY 1, 2
"""
# What is being added to at this moment is left for the next time.
_FORGET = """
    DELETE FROM scheduler_counter WHERE (metric, labels, shard) IN (
           SELECT metric, labels, shard FROM scheduler_counter WHERE period < {period}
              FOR UPDATE SKIP LOCKED LIMIT 10000)
"""
_BEGAN = "to_timestamp(floor(extract(epoch FROM now()) / nullif(%(seconds)s, 0)) * %(seconds)s)"
"""SQL of when the running period began; null when nothing is ever reset."""
_OF_NEW = f"CASE WHEN new.metric = ANY(%(reset)s) THEN {_BEGAN} END"
"""SQL of the period a new row belongs to; null for totals that are never reset."""


class CounterManager(models.Manager["Counter"]):
    """Adding up in one statement, whatever the number of counts."""

    def add(self, amounts: Mapping[Count, float], *, reset_every_seconds: float) -> None:
        """Add to the totals of the running period; the first count of a period begins at nothing.

        Periods follow the clock, so that all workers agree on them and nobody has to reset anything. With a
        period of 0 seconds totals go on for ever.
        """
        if not amounts:
            return
        rows = [
            {"metric": count.metric, "labels": count.labels, "amount": amount}
            for count, amount in amounts.items()
        ]
        given = {**_periods(reset_every_seconds), "amounts": json_text(rows)}
        with connection.cursor() as cursor:
            cursor.execute(_ADD.format(period=_OF_NEW), given)

    def totals(self, *, reset_every_seconds: float) -> Sequence[tuple[Count, float]]:
        """Every total of the running period, in one query. What was counted before it has begun is nothing."""
        with connection.cursor() as cursor:
            cursor.execute(_TOTALS.format(period=_BEGAN), _periods(reset_every_seconds))
            return [
                (Count(metric=Metric(metric), labels=tuple(labels)), total)
                for metric, labels, total in cursor.fetchall()
            ]

    def forget(self, *, reset_every_seconds: float) -> None:
        """Delete what belongs to past periods, so that nodes and queues that are gone leave nothing behind."""
        with connection.cursor() as cursor:
            cursor.execute(_FORGET.format(period=_BEGAN), _periods(reset_every_seconds))


def _periods(reset_every_seconds: float) -> dict[str, float | list[str] | str]:
    return {
        "seconds": reset_every_seconds,
        "reset": [str(metric) for metric in Metric if metric.is_reset],
    }


class Counter(models.Model):
    """One share of a total."""

    pk = CompositePrimaryKey("metric", "labels", "shard")
    metric = models.CharField(max_length=32)
    labels = ArrayField(models.TextField(), default=list)
    """Values of the metric's labels, in their order."""
    shard = models.SmallIntegerField()
    period = models.DateTimeField(null=True)
    """When the period began that it counts; an earlier one's total is nothing by now. Null: it is never reset."""
    total = models.FloatField()

    objects = CounterManager()

    class Meta:
        constraints = [one_of("counter_metric_known", "metric", Metric)]
        # Totals of past periods are deleted.
        indexes = [models.Index(fields=["period"], name="counter_by_period")]

    def __str__(self) -> str:
        return f"{self.metric} {', '.join(self.labels)}"
