"""Small pools to plan for: a node has one CPU and 1Gi of memory, a job asks for a tenth of one and 64Mi."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.placement import NodeCapacity, Requirements
from scheduler.planning import (
    Gang,
    NodeState,
    Plan,
    PoolState,
    PriorityClass,
    QueuedJob,
    QueueState,
    RunningJob,
    TokenBucket,
    Use,
)

HOSTNAME = "kubernetes.io/hostname"
MEBI = 1 << 20
NOON = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)
NO_LIMIT = TokenBucket.full(rate=0.0, burst=0, at=NOON)
CLASSES = {
    known.name: known
    for known in (
        PriorityClass(name="low", priority=1, preemptible=True),
        PriorityClass(name="normal", priority=2, preemptible=True),
        PriorityClass(name="steady", priority=2),
        PriorityClass(name="urgent", priority=3),
    )
}


def node(name: str = "n1", *, used: Use | None = None, **fields: Any) -> NodeState:
    """A node that is known by its name."""
    defaults: dict[str, Any] = {
        "labels": {HOSTNAME: name},
        "cpu_millicores": 1_000,
        "memory_bytes": 1024 * MEBI,
    }
    capacity = NodeCapacity(executor="local", name=name, **{**defaults, **fields})
    return NodeState(capacity=capacity, used=used or Use())


def job(
    name: str, *, priority: int = 0, age: int = 0, of: str = "", gang: Gang | None = None, **needs: Any
) -> QueuedJob:
    """A job that waits, `of` a priority class."""
    needs = {"cpu_millicores": 100, "memory_bytes": 64 * MEBI, **needs}
    return QueuedJob(
        id=name,
        version=1,
        priority_class=of,
        priority=priority,
        submitted_at=NOON - timedelta(seconds=age),
        requirements=Requirements(**needs),
        gang=gang,
    )


def run(
    name: str,
    *,
    on: str = "n1",
    queue: str = "b",
    of: str = "normal",
    age: int = 0,
    gang: str = "",
    cpu_millicores: int = 500,
    **held: Any,
) -> RunningJob:
    """A run at work, `of` a priority class."""
    return RunningJob(
        run_id=name,
        job_id=f"job-{name}",
        queue=queue,
        executor="local",
        node=on,
        priority_class=of,
        used=Use(cpu_millicores=cpu_millicores, **held),
        leased_at=NOON - timedelta(seconds=age),
        gang_id=gang,
    )


def queue(*jobs: QueuedJob, name: str = "nightly", rate: TokenBucket = NO_LIMIT, **fields: Any) -> QueueState:
    """A queue without limits."""
    return QueueState(name=name, jobs=jobs, rate=rate, **fields)


def pool(
    *queues: QueueState,
    nodes: Sequence[NodeState],
    running: Sequence[RunningJob] = (),
    rate: TokenBucket = NO_LIMIT,
    **rules: Any,
) -> PoolState:
    """A pool in which the runs count as used of their nodes, queues and classes."""
    return PoolState(
        nodes=[_busy_node(each, running) for each in nodes],
        queues=[_busy_queue(each, running) for each in queues],
        running=running,
        rate=rate,
        node_id_label=HOSTNAME,
        priority_classes=CLASSES,
        **rules,
    )


def order(found: Plan) -> list[str]:
    """The jobs that start, as they came."""
    return [lease.job.id for lease in found.leases]


def places(found: Plan) -> dict[str, str]:
    """Job → node."""
    return {lease.job.id: lease.node.name for lease in found.leases}


def gave_way(found: Plan) -> dict[str, str]:
    """Run → the job that takes its place."""
    return {each.run_id: each.for_job for each in found.preemptions}


def total(uses: Iterable[Use]) -> Use:
    """All together."""
    cpu = memory = 0
    resources: dict[str, int] = defaultdict(int)
    for use in uses:
        cpu += use.cpu_millicores
        memory += use.memory_bytes
        for name, amount in use.resources.items():
            resources[name] += amount
    return Use(cpu_millicores=cpu, memory_bytes=memory, resources=dict(resources))


def _busy_node(state: NodeState, running: Iterable[RunningJob]) -> NodeState:
    return replace(
        state, used=total([state.used, *(each.used for each in running if each.node == state.capacity.name)])
    )


def _busy_queue(state: QueueState, running: Iterable[RunningJob]) -> QueueState:
    own = [each for each in running if each.queue == state.name]
    by_class: dict[str, list[Use]] = defaultdict(list)
    for each in own:
        by_class[each.priority_class].append(each.used)
    return replace(
        state,
        used=total([state.used, *(each.used for each in own)]),
        used_by_class={name: total(uses) for name, uses in by_class.items()},
    )
