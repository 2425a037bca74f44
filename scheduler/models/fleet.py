"""The fleet: pools, executors and their nodes, as last reported."""

from collections.abc import Iterable

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import UniqueConstraint

WORK_CHANNEL = "tack_work"
"""The channel of the database on which executors are told to ask for work."""


class Pool(models.Model):
    """Nodes that share their queue of work."""

    name = models.CharField(max_length=63, primary_key=True)

    def __str__(self) -> str:
        return self.name


class PoolRound(models.Model):
    """The last round of a pool, and why jobs were not placed in it, per requirements key."""

    pool = models.OneToOneField(Pool, models.CASCADE, primary_key=True, related_name="last_round")
    number = models.PositiveBigIntegerField(default=0)
    """Counts the rounds that were written; a plan made before another round was written is dropped."""
    ended_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0.0)
    placed = models.PositiveIntegerField(default=0)
    wanted = models.BooleanField(default=False)
    """Set by whoever found a round already going on: the one going on makes another."""
    unplaced = models.JSONField(default=dict)
    """Requirements key → sentence."""
    held = models.JSONField(default=dict)
    """Queue → why none or no more of its jobs were looked at, in a sentence."""
    rates = models.JSONField(default=dict)
    """Rate limits that are not at rest: name of a queue, or empty for the pool → `[tokens, time]`."""

    def __str__(self) -> str:
        return f"round of {self.pool_id}"


class ExecutorManager(models.Manager["Executor"]):
    """Bells for executors."""

    def wake(self, names: Iterable[str]) -> None:
        """Tell waiting agents, when this transaction commits, that there is work to ask for."""
        with connection.cursor() as cursor:
            for name in sorted(set(names)):
                cursor.execute("SELECT pg_notify(%s, %s)", [WORK_CHANNEL, name])


class Executor(models.Model):
    """An agent's executor as its last heartbeat described it."""

    name = models.CharField(max_length=63, primary_key=True)
    pool = models.ForeignKey(Pool, models.PROTECT, related_name="executors")
    version = models.TextField(blank=True)
    heartbeat_at = models.DateTimeField(null=True)
    """Time of receipt; leases expire by it."""
    clock_skew_seconds = models.FloatField(default=0.0)
    categories = models.JSONField(default=list)
    """`[{"name": …, "disposition": "Retain|Delete"}]`, in the order reported."""
    tracked_node_labels = ArrayField(models.TextField(), default=list)
    honours = ArrayField(models.TextField(), default=list)
    """Pod spec fields the executor honours."""

    objects = ExecutorManager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A node of an executor, with its total capacity."""

    executor = models.ForeignKey(Executor, models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict)
    cpu_millicores = models.BigIntegerField()
    memory_bytes = models.BigIntegerField()
    resources = models.JSONField(default=dict)
    """Other resources by their Kubernetes names, in whole units."""
    schedulable = models.BooleanField(default=True)
    memory_enforced_by = models.CharField(max_length=16, blank=True)
    notes = ArrayField(models.TextField(), default=list)
    reported_at = models.DateTimeField()

    class Meta:
        ordering = ["executor_id", "name"]
        constraints = [UniqueConstraint(name="node_once_per_executor", fields=["executor", "name"])]

    def __str__(self) -> str:
        return self.name
