"""History: what has been added up of the past. Kept by a periodic task, never by a verb.

Everything is counted in the bucket in which the database recorded it, by its own clock: a report that comes late
counts when it comes, and a bucket that has closed never changes. What is not added up yet is counted when it is
read (`scheduler.queries.rollups`), so that the sum is always exact.
"""

from django.db import models
from django.db.models import UniqueConstraint

COUNTED = ["failures", "core_seconds"]
"""Stands in the index of a roll-up beside the key, so that the index alone answers (X3, X6, T3; likewise T2)."""


class JobTotal(models.Model):
    """The jobs of a queue that ended in one state and were counted; retention takes off what it deletes."""

    queue = models.CharField(max_length=253)
    state = models.CharField(max_length=16)
    jobs = models.BigIntegerField()
    last_changed_at = models.DateTimeField()
    changed_seconds = models.DecimalField(max_digits=40, decimal_places=6)
    """The sum of `state_changed_at` in seconds since 1970, for their average."""
    lasted_seconds = models.DecimalField(max_digits=40, decimal_places=6)
    """The sum of the times from submission to the end."""

    class Meta:
        constraints = [UniqueConstraint(name="job_total_once", fields=["queue", "state"])]

    def __str__(self) -> str:
        return f"{self.jobs} {self.state} of {self.queue}"


class _QueueFailures(models.Model):
    """Failed runs of a queue and category."""

    queue = models.CharField(max_length=253)
    category = models.CharField(max_length=63, blank=True)
    failures = models.BigIntegerField()
    core_seconds = models.FloatField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.failures} {self.category} of {self.queue}"


class FailureHour(_QueueFailures):
    """Failed runs of one hour, queue and category. Kept for ever."""

    hour = models.DateTimeField()

    class Meta:
        constraints = [
            UniqueConstraint(name="failure_hour_once", fields=["hour", "queue", "category"], include=COUNTED)
        ]


class QueueFailureDay(_QueueFailures):
    """The hours of a day together. Kept for ever."""

    day = models.DateTimeField()

    class Meta:
        constraints = [
            UniqueConstraint(
                name="queue_failure_day_once", fields=["day", "queue", "category"], include=COUNTED
            )
        ]


class FailureDay(models.Model):
    """Failed runs of one day, category and subcategory. Kept for ever."""

    day = models.DateTimeField()
    category = models.CharField(max_length=63, blank=True)
    subcategory = models.CharField(max_length=63, blank=True)
    failures = models.BigIntegerField()
    core_seconds = models.FloatField()

    class Meta:
        constraints = [
            UniqueConstraint(
                name="failure_day_once", fields=["day", "category", "subcategory"], include=COUNTED
            )
        ]

    def __str__(self) -> str:
        return f"{self.failures} {self.category}/{self.subcategory} on {self.day}"


class _PoolFailures(models.Model):
    """Failed runs of one day and pool."""

    day = models.DateTimeField()
    pool = models.CharField(max_length=63)
    failures = models.BigIntegerField()
    core_seconds = models.FloatField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.failures} in {self.pool}, {self.day}"


class PoolFailureDay(_PoolFailures):
    """Failed runs of one day, pool and category: those of its nodes together, and kept as long as they."""

    category = models.CharField(max_length=63, blank=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                name="pool_failure_day_once", fields=["day", "pool", "category"], include=COUNTED
            )
        ]


class _NodeFailures(_PoolFailures):
    """Failed runs of one day and node."""

    executor = models.CharField(max_length=253)
    node = models.CharField(max_length=253)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.failures} on {self.node}, {self.day}"


class NodeFailureDay(_NodeFailures):
    """Failed runs of one day, node and category. Kept as long as the runs: there are as many nodes as that."""

    category = models.CharField(max_length=63, blank=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                name="node_failure_day_once",
                fields=["day", "pool", "executor", "node", "category"],
                include=COUNTED,
            )
        ]


class NodeDayTotal(_NodeFailures):
    """All failed runs of one day and node, kept as long: which nodes are worst is asked of these (X3)."""

    class Meta:
        constraints = [
            UniqueConstraint(
                name="node_day_total_once", fields=["day", "pool", "executor", "node"], include=COUNTED
            )
        ]


class _Retries(models.Model):
    """Decisions by policy, rule and verdict; and of granted retries how the next run ended.

    A decision counts when it was made, with no outcome; an outcome when the outcome was recorded, with the
    policy and rule that granted the retry. A retry whose job was cancelled or preempted before has none.
    """

    policy = models.CharField(max_length=63)
    rule = models.IntegerField(null=True)
    """From 0; null when no rule matched."""
    verdict = models.CharField(max_length=24)
    outcome = models.CharField(max_length=16, blank=True)
    """The state the run after the retry ended in; empty where decisions are counted."""
    after = models.PositiveIntegerField()
    """Of an outcome: after how many retries the job had it. 0 where decisions are counted."""
    times = models.BigIntegerField()
    core_seconds = models.FloatField()
    """Of the runs decided about, or of those that ended so."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.times} {self.verdict} {self.outcome} of {self.policy}"


class RetryHour(_Retries):
    """Decisions and outcomes of one hour. Kept for ever."""

    hour = models.DateTimeField()

    class Meta:
        constraints = [
            UniqueConstraint(
                name="retry_hour_once",
                fields=["hour", "policy", "rule", "verdict", "outcome", "after"],
                nulls_distinct=False,
                include=["times", "core_seconds"],
            )
        ]


class RetryDay(_Retries):
    """The hours of a day together. Kept for ever."""

    day = models.DateTimeField()

    class Meta:
        constraints = [
            UniqueConstraint(
                name="retry_day_once",
                fields=["day", "policy", "rule", "verdict", "outcome", "after"],
                nulls_distinct=False,
                include=["times", "core_seconds"],
            )
        ]
