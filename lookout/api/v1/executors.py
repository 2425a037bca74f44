"""Executors and their nodes, as last reported, with what runs hold of them."""

import dataclasses
from datetime import datetime

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import query_of
from lookout.api.endpoint import Endpoint, NoQuery, Nothing, answer
from lookout.api.schema import described
from policies.failures import Disposition
from scheduler.configured import configuration
from scheduler.cordoning import delete_executor
from scheduler.executors.protocol import CategoryDescription, TaintDescription, TaintEffect
from scheduler.placement import taints_of
from scheduler.queries.fleet import ExecutorRow, NodeRow, executor_row, executor_rows


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Amounts:
    """CPU, memory and other resources."""

    cpu_millicores: int
    memory_bytes: int
    resources: dict[str, int]
    """Other resources by name, in whole units."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NodeView:
    """A node."""

    name: str
    labels: dict[str, str]
    taints: tuple[TaintDescription, ...]
    """Keep jobs off it that do not tolerate them."""
    schedulable: bool
    """Takes new runs, as far as its executor says."""
    cordoned: bool
    """An operator wants no new runs on it."""
    cordoned_by: str
    cordon_reason: str
    memory_enforced_by: str
    """cgroup2, cgroup1 or poll; empty for nobody."""
    notes: tuple[str, ...]
    """What this node ignores or cannot do, and why."""
    capacity: Amounts
    used: Amounts
    """What its active runs hold."""
    runs: int
    """Active runs."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorView:
    """An executor as its last heartbeat described it."""

    name: str
    pool: str
    version: str
    silent: bool
    """Not heard of within `executorTimeout`: its nodes do not count."""
    cordoned: bool
    """An operator wants no new runs on any of its nodes."""
    cordoned_by: str
    cordon_reason: str
    heartbeat_at: datetime | None
    """When the last one was received."""
    clock_skew_seconds: float
    """How far its clock is ahead."""
    categories: tuple[CategoryDescription, ...]
    """In the order it tries them."""
    tracked_node_labels: tuple[str, ...]
    honours: tuple[str, ...]
    """Fields of the pod spec it acts on."""
    nodes: tuple[NodeView, ...]
    runs: int
    """Active runs."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorList:
    """Every executor ever heard of, by name."""

    executors: tuple[ExecutorView, ...]


def executor_view(row: ExecutorRow) -> ExecutorView:
    """An executor as it travels."""
    executor = row.executor
    return ExecutorView(
        name=executor.name,
        pool=executor.pool_id,
        version=executor.version,
        silent=row.is_silent,
        cordoned=executor.cordoned,
        cordoned_by=executor.cordoned_by,
        cordon_reason=executor.cordon_reason,
        heartbeat_at=executor.heartbeat_at,
        clock_skew_seconds=executor.clock_skew_seconds,
        categories=tuple(
            CategoryDescription(name=each["name"], disposition=Disposition(each["disposition"]))
            for each in executor.categories
        ),
        tracked_node_labels=tuple(executor.tracked_node_labels),
        honours=tuple(executor.honours),
        nodes=tuple(_node_view(node) for node in row.nodes),
        runs=row.runs,
    )


def _node_view(row: NodeRow) -> NodeView:
    node = row.node
    return NodeView(
        name=node.name,
        labels=dict(node.labels),
        taints=tuple(
            TaintDescription(key=taint.key, value=taint.value, effect=TaintEffect(taint.effect))
            for taint in taints_of(node.taints)
        ),
        schedulable=node.schedulable,
        cordoned=node.cordoned,
        cordoned_by=node.cordoned_by,
        cordon_reason=node.cordon_reason,
        memory_enforced_by=node.memory_enforced_by,
        notes=tuple(node.notes),
        capacity=Amounts(
            cpu_millicores=node.cpu_millicores, memory_bytes=node.memory_bytes, resources=dict(node.resources)
        ),
        used=Amounts(
            cpu_millicores=row.cpu_millicores_used,
            memory_bytes=row.memory_bytes_used,
            resources=dict(row.resources_used),
        ),
        runs=row.runs,
    )


class Executors(Endpoint):
    """All of them."""

    @described("listExecutors", tag="Executors", answer=ExecutorList)
    def get(self, request: Request) -> Response:
        """Every executor ever heard of, with its nodes, their capacity and what runs hold of it."""
        query_of(request, NoQuery)
        rows = executor_rows(config=configuration())
        return answer(ExecutorList(executors=tuple(executor_view(row) for row in rows)))


class ExecutorEndpoint(Endpoint):
    """One executor."""

    @described("getExecutor", tag="Executors", answer=ExecutorView, refusals=(404,))
    def get(self, request: Request, name: str) -> Response:
        """One executor with its nodes."""
        query_of(request, NoQuery)
        return answer(executor_view(executor_row(name, config=configuration())))

    @described("deleteExecutor", tag="Executors", answer=Nothing, refusals=(409,))
    def delete(self, request: Request, name: str) -> Response:
        """Forget an executor that is silent or stopped and has no active run, with its nodes; its runs stay.

        One that does not exist is no error, and one that calls again is there again.
        """
        delete_executor(name=name, actor=actor_of(request), config=configuration())
        return answer()
