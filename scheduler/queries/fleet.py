"""The fleet: nodes that count, what runs hold of them, and the rows of the pages about them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    Prefetch,
    Q,
    QuerySet,
    Sum,
)
from django.db.models.functions import Coalesce, Greatest, Now

from scheduler.config import Configuration
from scheduler.errors import NotFound
from scheduler.models import Executor, Job, Node, Pool, Run
from scheduler.placement import NodeCapacity, taints_of
from scheduler.states import ACTIVE_RUN_STATES, JobState

_OTHER_RESOURCES = """
    SELECT r.executor_id, r.node, r.queue_id, r.priority_class, resource.key, sum(resource.value::bigint)
      FROM scheduler_run r
      JOIN scheduler_executor e ON e.name = r.executor_id
CROSS JOIN LATERAL jsonb_each_text(r.resources) AS resource
     WHERE r.state IN ('leased', 'pending', 'running') AND r.resources <> '{}' AND e.pool_id = ANY(%s)
  GROUP BY 1, 2, 3, 4, 5
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeUse:
    """What the active runs of one queue and priority class hold of one node."""

    executor: str
    node: str
    queue: str
    priority_class: str = ""
    runs: int
    cpu_millicores: int
    memory_bytes: int
    resources: Mapping[str, int] = field(default_factory=dict)


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


def node_uses(*, pools: Iterable[str]) -> list[NodeUse]:
    """What active runs hold, per node, queue and priority class, in two queries."""
    wanted = list(pools)
    others = _other_resources(wanted)
    rows = (
        Run.objects.filter(state__in=ACTIVE_RUN_STATES, executor__pool__in=wanted)
        .values_list("executor_id", "node", "queue_id", "priority_class")
        .annotate(runs=Count("id"), cpu=Sum("cpu_request_millicores"), memory=Sum(_reserved()))
    )
    return [
        NodeUse(
            executor=executor,
            node=node,
            queue=queue,
            priority_class=priority_class,
            runs=runs,
            cpu_millicores=int(cpu),
            memory_bytes=int(memory),
            resources=others.get((executor, node, queue, priority_class), {}),
        )
        for executor, node, queue, priority_class, runs, cpu, memory in rows
    ]


def executor_rows(*, config: Configuration) -> list[ExecutorRow]:
    """Every executor ever heard of, by name, with its nodes and what runs hold of them; constant queries."""
    return _rows(Executor.objects.all(), config)


def executor_row(name: str, *, config: Configuration) -> ExecutorRow:
    """One executor. Raises NotFound."""
    found = _rows(Executor.objects.filter(name=name), config)
    if not found:
        raise NotFound("executor", name)
    return found[0]


def _reserved() -> Greatest:
    return Greatest(
        Coalesce(F("memory_request_bytes"), 0),
        Coalesce(F("memory_limit_bytes"), 0),
        output_field=BigIntegerField(),
    )


def _other_resources(pools: list[str]) -> dict[tuple[str, str, str, str], dict[str, int]]:
    found: dict[tuple[str, str, str, str], dict[str, int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(_OTHER_RESOURCES, [pools])
        for executor, node, queue, priority_class, name, amount in cursor.fetchall():
            found[executor, node, queue, priority_class][name] = int(amount)
    return found


def _rows(executors: QuerySet[Executor], config: Configuration) -> list[ExecutorRow]:
    heard = ExpressionWrapper(heard_of(config), output_field=BooleanField())
    found = list(
        executors.order_by("name")
        .annotate(heard=heard)
        .prefetch_related(Prefetch("nodes", Node.objects.order_by("name")))
    )
    uses: dict[tuple[str, str], list[NodeUse]] = defaultdict(list)
    for use in node_uses(pools={executor.pool_id for executor in found}):
        uses[use.executor, use.node].append(use)
    return [
        ExecutorRow(
            executor=executor,
            is_silent=not executor.heard,
            nodes=[_node_row(node, uses[executor.name, node.name]) for node in executor.nodes.all()],
        )
        for executor in found
    ]


def _node_row(node: Node, uses: Sequence[NodeUse]) -> NodeRow:
    resources: dict[str, int] = defaultdict(int)
    for use in uses:
        for name, amount in use.resources.items():
            resources[name] += amount
    return NodeRow(
        node=node,
        runs=sum(use.runs for use in uses),
        cpu_millicores_used=sum(use.cpu_millicores for use in uses),
        memory_bytes_used=sum(use.memory_bytes for use in uses),
        resources_used=dict(resources),
    )
