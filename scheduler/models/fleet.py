"""The fleet: executors and their nodes, as last reported."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import Q, UniqueConstraint

from scheduler.models.pools import Pool

WORK_CHANNEL = "tack_work"
"""The channel of the database on which executors are told to ask for work."""


# Shared, so that rounds do not wait for each other; in the order of names, so that no two can wait for each other.
_HOLD = "SELECT 1 FROM scheduler_executor WHERE name = ANY(%s) ORDER BY name FOR SHARE"


# Its pool comes with it. Nothing is looked up first: nearly every heartbeat is of an executor that is known.
_HEAR = """
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
         pool AS (INSERT INTO scheduler_pool (name, round_wanted) VALUES (%(pool)s, false) ON CONFLICT DO NOTHING)
    INSERT INTO scheduler_executor AS known (
           name, pool_id, version, heartbeat_at, clock_skew_seconds, categories, tracked_node_labels, honours,
           cordoned, cordoned_by, cordon_reason)
    SELECT %(name)s, %(pool)s, %(version)s, now,
           coalesce(extract(epoch FROM %(agent_time)s::timestamptz - now)::float8, 0), %(categories)s::jsonb,
           %(tracked_node_labels)s::text[], %(honours)s::text[], false, '', ''
      FROM clock
        ON CONFLICT (name) DO UPDATE
       SET pool_id = excluded.pool_id, version = excluded.version, heartbeat_at = excluded.heartbeat_at,
           clock_skew_seconds = excluded.clock_skew_seconds, categories = excluded.categories,
           tracked_node_labels = excluded.tracked_node_labels, honours = excluded.honours
 RETURNING heartbeat_at, nodes_changed_at IS NOT NULL
"""


class Heard(NamedTuple):
    """What became of an executor that was heard of."""

    at: datetime
    was_known: bool
    """It has told of its nodes before."""


class ExecutorManager(models.Manager["Executor"]):
    """Hearing of executors, bells for them, and holding them still."""

    def hear(
        self,
        name: str,
        *,
        pool: str,
        version: str,
        agent_time: datetime | None,
        categories: Sequence[Mapping[str, str]],
        tracked_node_labels: Sequence[str],
        honours: Sequence[str],
    ) -> Heard:
        """Write what an executor says of itself, in one statement; the row stays locked until the transaction ends.

        Cordons are left as they are. `agent_time` is only to see how far the clocks are apart.
        """
        told = {
            "name": name,
            "pool": pool,
            "version": version,
            "agent_time": agent_time,
            "categories": json.dumps(list(categories)),
            "tracked_node_labels": list(tracked_node_labels),
            "honours": list(honours),
        }
        with connection.cursor() as cursor:
            cursor.execute(_HEAR, told)
            return Heard._make(cursor.fetchone())

    def hold(self, names: Iterable[str]) -> None:
        """Until this transaction ends, what the executors say of themselves stays as it is: heartbeats wait."""
        with connection.cursor() as cursor:
            cursor.execute(_HOLD, [sorted(set(names))])

    def wake(self, names: Iterable[str]) -> None:
        """Tell waiting agents, when this transaction commits, that there is work to ask for."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_notify(%s, name) FROM unnest(%s::text[]) AS name",
                [WORK_CHANNEL, sorted(set(names))],
            )


class Executor(models.Model):
    """An agent's executor as its last heartbeat described it."""

    name = models.CharField(max_length=63, primary_key=True)
    pool = models.ForeignKey(Pool, models.PROTECT, related_name="executors")
    version = models.TextField(blank=True)
    heartbeat_at = models.DateTimeField(null=True)
    """Time of receipt; leases expire by it."""
    nodes_changed_at = models.DateTimeField(null=True)
    """When what it says of its nodes last changed: what was worked out from them holds until then."""
    clock_skew_seconds = models.FloatField(default=0.0)
    categories = models.JSONField(default=list)
    """`[{"name": …, "disposition": "Retain|Delete"}]`, in the order reported."""
    tracked_node_labels = ArrayField(models.TextField(), default=list)
    honours = ArrayField(models.TextField(), default=list)
    """Pod spec fields the executor honours."""
    cordoned = models.BooleanField(default=False)
    """An operator wants no new runs on any of its nodes."""
    cordoned_by = models.TextField(blank=True)
    cordon_reason = models.TextField(blank=True)

    objects = ExecutorManager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


SEEN_BY_ROUNDS = ("labels", "cpu_millicores", "memory_bytes", "resources", "taints", "schedulable")
"""Columns of a node that a round goes by; when they change, a round is worth while."""
TOLD_OF_NODES = (*SEEN_BY_ROUNDS, "memory_enforced_by", "notes")
"""Columns of a node that its executor tells."""


def _of(table: str, columns: Iterable[str]) -> str:
    return ", ".join(f"{table}.{column}" for column in columns)


# Compared where the rows are: hardly ever is there news, and then no row travels.
_NEWS = f"""
    SELECT coalesce(told.name, known.name), told.name IS NULL,
           told.name IS NULL OR known.name IS NULL
           OR ({_of("told", SEEN_BY_ROUNDS)}) IS DISTINCT FROM ({_of("known", SEEN_BY_ROUNDS)})
      FROM jsonb_to_recordset(%(nodes)s::jsonb) AS told(
               name text, labels jsonb, cpu_millicores bigint, memory_bytes bigint, resources jsonb, taints jsonb,
               schedulable bool, memory_enforced_by text, notes text[])
 FULL JOIN (SELECT * FROM scheduler_node WHERE executor_id = %(executor)s) AS known ON known.name = told.name
     WHERE (told.name, {_of("told", TOLD_OF_NODES)}) IS DISTINCT FROM (known.name, {_of("known", TOLD_OF_NODES)})
"""  # noqa: S608 - what is put in stands above


class NewsOfNode(NamedTuple):
    """A node of which something else is told than is written."""

    name: str
    is_gone: bool
    """It is not named any more."""
    matters_to_rounds: bool


class NodeManager(models.Manager["Node"]):
    """Set-based SQL of the node table."""

    def news(self, executor: str, nodes: Iterable[Mapping[str, Any]]) -> list[NewsOfNode]:
        """Where all that an executor tells of its nodes, by name and `TOLD_OF_NODES`, differs from what is written."""
        told = json.dumps(list(nodes))
        with connection.cursor() as cursor:
            cursor.execute(_NEWS, {"executor": executor, "nodes": told})
            return [NewsOfNode._make(row) for row in cursor]


class Node(models.Model):
    """A node of an executor, with its total capacity."""

    executor = models.ForeignKey(Executor, models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict)
    cpu_millicores = models.BigIntegerField()
    memory_bytes = models.BigIntegerField()
    resources = models.JSONField(default=dict)
    """Other resources by their Kubernetes names, in whole units."""
    taints = models.JSONField(default=list)
    """`[{"key", "value", "effect"}]`, as in Kubernetes."""
    schedulable = models.BooleanField(default=True)
    """What the executor says."""
    cordoned = models.BooleanField(default=False)
    """An operator wants no new runs on it. A heartbeat leaves this as it is."""
    cordoned_by = models.TextField(blank=True)
    cordon_reason = models.TextField(blank=True)
    memory_enforced_by = models.CharField(max_length=16, blank=True)
    notes = ArrayField(models.TextField(), default=list)
    reported_at = models.DateTimeField()
    """When its executor last said something new of it. Whether it is still there, the executor's heartbeat tells."""

    objects = NodeManager()

    class Meta:
        ordering = ["executor_id", "name"]
        constraints = [UniqueConstraint(name="node_once_per_executor", fields=["executor", "name"])]

    def __str__(self) -> str:
        return self.name

    @property
    def takes_runs(self) -> bool:
        """Neither its executor nor an operator has closed it: as `TAKES_RUNS`. Needs `executor` to be loaded."""
        return self.schedulable and not self.cordoned and not self.executor.cordoned

    @property
    def closed_because(self) -> str:
        """Why it takes no new runs, in a sentence, where that is known. Needs `executor` to be loaded."""
        if self.executor.cordoned:
            return f"Its executor is cordoned{_by(self.executor.cordoned_by, self.executor.cordon_reason)}."
        if self.cordoned:
            return f"It is cordoned{_by(self.cordoned_by, self.cordon_reason)}."
        return "" if self.schedulable else next(iter(self.notes), "")


TAKES_RUNS = Q(schedulable=True, cordoned=False, executor__cordoned=False)
"""Of nodes: those that take new runs."""


def _by(who: str, why: str) -> str:
    return f"{f' by {who}' if who else ''}{f': {why.rstrip(".")}' if why else ''}"
