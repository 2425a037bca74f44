"""The fleet: nodes that count, what runs hold of them, and the rows of the pages about them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import BooleanField, Exists, ExpressionWrapper, Prefetch, Q, QuerySet
from django.db.models.functions import Now

from scheduler.config import Configuration
from scheduler.errors import NotFound
from scheduler.models import Executor, Job, Node, Pool
from scheduler.placement import NodeCapacity, taints_of
from scheduler.states import JobState

# Of each node and of each queue, not of each queue on each node: of a hundred thousand runs those are nearly as many.
_AMOUNTS = """
    SELECT r.executor_id, r.node, r.queue_id, r.priority_class, count(*), sum(r.cpu_request_millicores),
           sum(greatest(r.memory_request_bytes, r.memory_limit_bytes, 0))
      FROM scheduler_run r
      JOIN scheduler_executor e ON e.name = r.executor_id
     WHERE r.state IN ('leased', 'pending', 'running') AND e.pool_id = ANY(%s)
  GROUP BY GROUPING SETS ((r.executor_id, r.node, r.priority_class), (r.queue_id, r.priority_class))
"""
_OTHER_RESOURCES = """
    SELECT r.executor_id, r.node, r.queue_id, r.priority_class, resource.key, sum(resource.value::bigint)
      FROM scheduler_run r
      JOIN scheduler_executor e ON e.name = r.executor_id
CROSS JOIN LATERAL jsonb_each_text(r.resources) AS resource
     WHERE r.state IN ('leased', 'pending', 'running') AND r.resources <> '{}' AND e.pool_id = ANY(%s)
  GROUP BY GROUPING SETS ((r.executor_id, r.node, r.priority_class, resource.key),
                          (r.queue_id, r.priority_class, resource.key))
"""

type NodeKey = tuple[str, str]
"""Executor and node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassUse:
    """What active runs of one priority class hold."""

    priority_class: str
    runs: int
    cpu_millicores: int
    memory_bytes: int
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Uses:
    """What active runs hold, by priority class."""

    of_nodes: Mapping[NodeKey, Sequence[ClassUse]]
    of_queues: Mapping[str, Sequence[ClassUse]]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRow:
    """A node as pages show it."""

    node: Node
    runs: int
    cpu_millicores_used: int
    memory_bytes_used: int
    resources_used: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorRow:
    """An executor as pages show it."""

    executor: Executor
    is_silent: bool
    """Not heard of within `executorTimeout`: its nodes do not count."""
    nodes: Sequence[NodeRow]

    @property
    def is_away(self) -> bool:
        """It is silent, or its agent said that it takes no more runs."""
        return self.is_silent or not any(row.node.schedulable for row in self.nodes)

    @property
    def runs(self) -> int:
        """Active runs on nodes it still names."""
        return sum(row.runs for row in self.nodes)


def heard_of(config: Configuration, *, path: str = "") -> Q:
    """Executors heard of within `executorTimeout`, by the database's clock; `path` leads to the executor."""
    return Q(**{f"{path}heartbeat_at__gte": Now() - timedelta(seconds=config.executor_timeout_seconds)})


def fleet_nodes(*, config: Configuration, pool: str | None = None) -> list[NodeCapacity]:
    """The nodes of every executor heard of lately, of one pool or of all, in two queries. Closed ones included."""
    nodes = (
        Node.objects.filter(heard_of(config, path="executor__"))
        .prefetch_related("executor")  # a thousand nodes share it
        .order_by("executor_id", "name")
    )
    if pool is not None:
        nodes = nodes.filter(executor__pool=pool)
    return [
        NodeCapacity(
            executor=node.executor_id,
            name=node.name,
            labels=node.labels,
            cpu_millicores=node.cpu_millicores,
            memory_bytes=node.memory_bytes,
            taints=taints_of(node.taints),
            resources={
                name: amount
                for name, amount in node.resources.items()
                if name in config.supported_resource_types
            },
            schedulable=node.takes_runs,
            closed_because=node.closed_because,
            honours=frozenset(node.executor.honours),
        )
        for node in nodes
    ]


def pools_with_work() -> list[str]:
    """The pools a round is worth making in: all of them while any job is queued, else none; one query."""
    queued = Job.objects.filter(state=JobState.QUEUED)
    return list(Pool.objects.filter(Exists(queued)).order_by("name").values_list("name", flat=True))


def uses(*, pools: Iterable[str]) -> Uses:
    """What active runs hold of each node, and those of each queue of all of them, in two queries."""
    wanted = list(pools)
    others = _other_resources(wanted)
    found: dict[NodeKey | str, list[ClassUse]] = defaultdict(list)
    for executor, node, queue, priority_class, runs, cpu, memory in _answered(_AMOUNTS, wanted):
        holder = queue or (executor, node)
        use = ClassUse(
            priority_class=priority_class,
            runs=runs,
            cpu_millicores=int(cpu),
            memory_bytes=int(memory),
            resources=others.get((holder, priority_class), {}),
        )
        found[holder].append(use)
    return Uses(
        of_nodes={holder: held for holder, held in found.items() if isinstance(holder, tuple)},
        of_queues={holder: held for holder, held in found.items() if isinstance(holder, str)},
    )


def _other_resources(pools: list[str]) -> dict[tuple[NodeKey | str, str], dict[str, int]]:
    found: dict[tuple[NodeKey | str, str], dict[str, int]] = defaultdict(dict)
    for executor, node, queue, priority_class, name, amount in _answered(_OTHER_RESOURCES, pools):
        found[queue or (executor, node), priority_class][name] = int(amount)
    return found


def _answered(statement: str, pools: list[str]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [pools])
        return list(cursor.fetchall())


def executor_rows(*, config: Configuration) -> list[ExecutorRow]:
    """Every executor ever heard of, by name, with its nodes and what runs hold of them; constant queries."""
    return _rows(Executor.objects.all(), config)


def executor_row(name: str, *, config: Configuration) -> ExecutorRow:
    """One executor. Raises NotFound."""
    found = _rows(Executor.objects.filter(name=name), config)
    if not found:
        raise NotFound("executor", name)
    return found[0]


def _rows(executors: QuerySet[Executor], config: Configuration) -> list[ExecutorRow]:
    heard = ExpressionWrapper(heard_of(config), output_field=BooleanField())
    found = list(
        executors.order_by("name")
        .annotate(heard=heard)
        .prefetch_related(Prefetch("nodes", Node.objects.order_by("name")))
    )
    held = uses(pools={executor.pool_id for executor in found}).of_nodes
    return [
        ExecutorRow(
            executor=executor,
            is_silent=not executor.heard,
            nodes=[
                _node_row(node, held.get((executor.name, node.name), ())) for node in executor.nodes.all()
            ],
        )
        for executor in found
    ]


def _node_row(node: Node, held: Sequence[ClassUse]) -> NodeRow:
    resources: dict[str, int] = defaultdict(int)
    for use in held:
        for name, amount in use.resources.items():
            resources[name] += amount
    return NodeRow(
        node=node,
        runs=sum(use.runs for use in held),
        cpu_millicores_used=sum(use.cpu_millicores for use in held),
        memory_bytes_used=sum(use.memory_bytes for use in held),
        resources_used=dict(resources),
    )
