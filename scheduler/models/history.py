"""History: what has been added up of the past, and up to which moment. Kept by a periodic task, never by a verb.

Everything is counted in the bucket in which the database recorded it, by its own clock: a report that comes late
counts when it comes, and a bucket that has closed never changes. What is not added up yet is counted when it is
read (`scheduler.queries.rollups`), so that the sum is always exact.
"""

from datetime import UTC, datetime

from django.db import connection, models
from django.db.models import CheckConstraint, Q, UniqueConstraint

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
COUNTED = ["failures", "core_seconds"]
"""Stands in the index of a roll-up beside the key, so that the index alone answers (X3, X6, T3; likewise T2)."""

# A moment is over once no transaction that began before it is open: each takes its times of recording from the clock,
# after it has begun and can be seen here. The clock is read first: what cannot be seen yet records later. Sessions that
# stand still within a transaction hold this up, and nothing else does.
_OVER = """
    SELECT least(statement_timestamp(), min(xact_start)) FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


class HistoryMarkManager(models.Manager["HistoryMark"]):
    """Reads and takes the one row."""

    def take(self) -> "HistoryMark | None":
        """The mark, locked until the transaction ends; None while another works on the history."""
        self.bulk_create([HistoryMark()], ignore_conflicts=True)
        return self.select_for_update(skip_locked=True).first()

    def over_until(self) -> datetime:
        """Nothing will be recorded any more before this moment. What was is seen by the next statement."""
        with connection.cursor() as cursor:
            cursor.execute(_OVER)
            (moment,) = cursor.fetchone()
        assert isinstance(moment, datetime)
        return moment


class HistoryMark(models.Model):
    """How far the past has been worked through. One row; whoever adds up or deletes holds it."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    closed_until = models.DateTimeField(default=BEGINNING)
    """A full hour: what was recorded before it is in the roll-ups."""
    counted_until = models.DateTimeField(default=BEGINNING)
    """Jobs whose end was recorded before it are in the totals."""
    outputs_until = models.DateTimeField(default=BEGINNING)
    """Runs whose end was recorded before it have no output any more."""
    client_ids_until = models.DateTimeField(default=BEGINNING)
    """Jobs whose end was recorded before it have no client id any more."""

    objects = HistoryMarkManager()

    class Meta:
        constraints = [CheckConstraint(name="one_history_mark", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"closed until {self.closed_until}"


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
