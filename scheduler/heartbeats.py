"""Record heartbeats: an executor is there, and this is what it has."""

import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.executors.protocol import Heartbeat, NodeDescription
from scheduler.models import Executor, Node, Pool
from scheduler.models.clock import database_now

type Shape = frozenset[tuple[str, int, int, str]]
"""What a round sees of an executor's nodes; when it changes, a round is worth while."""

log = logging.getLogger(__name__)
_warned_of: set[str] = set()
"""Executors whose nodes lack the node id label, as far as this process has said so."""


@transaction.atomic
def record_heartbeat(heartbeat: Heartbeat, *, config: Configuration | None = None) -> bool:
    """Write what the executor says of itself and its nodes; its leases live from the time of receipt.

    Nodes it does not name any more are gone. Returns whether there is room or a node there was not before.
    The same heartbeat again only moves the time.
    """
    now = database_now()
    Pool.objects.get_or_create(name=heartbeat.pool)
    executor, is_new = Executor.objects.select_for_update(no_key=True).update_or_create(
        name=heartbeat.executor,
        defaults={
            "pool_id": heartbeat.pool,
            "version": heartbeat.version,
            "heartbeat_at": now,
            "clock_skew_seconds": _skew(heartbeat.agent_time, now),
            "categories": [
                {"name": category.name, "disposition": str(category.disposition)}
                for category in heartbeat.categories
            ],
            "tracked_node_labels": list(heartbeat.tracked_node_labels),
            "honours": list(heartbeat.honours),
        },
    )
    before = _shape(Node.objects.filter(executor=executor))
    nodes = [_node(executor, description, now) for description in heartbeat.nodes]
    _replace_nodes(executor, nodes)
    _warn_of_unlabelled(heartbeat, (config or configuration()).node_id_label)
    changed = is_new or _shape(nodes) != before
    if changed:
        Executor.objects.filter(name=executor.name).update(nodes_changed_at=now)
    return changed


def _warn_of_unlabelled(heartbeat: Heartbeat, label: str) -> None:
    """Once for an executor, not with each of its heartbeats."""
    unlabelled = [node.name for node in heartbeat.nodes if label not in node.labels]
    if not unlabelled or heartbeat.executor in _warned_of:
        return
    _warned_of.add(heartbeat.executor)
    log.warning(
        "%s of the %s nodes of executor %s lack the label %s (%s is one), so avoidSameNode cannot keep jobs away "
        "from them: label them, and add the label to kubernetes.trackedNodeLabels",
        len(unlabelled), len(heartbeat.nodes), heartbeat.executor, label, unlabelled[0],
    )  # fmt: skip


def _skew(agent_time: str, now: datetime) -> float:
    """Seconds the agent's clock is ahead of ours; 0 when it does not tell."""
    try:
        told = datetime.fromisoformat(agent_time)
    except ValueError:
        return 0.0
    return (told - now).total_seconds() if told.tzinfo else 0.0


def _node(executor: Executor, description: NodeDescription, now: datetime) -> Node:
    return Node(
        executor=executor,
        name=description.name,
        labels=dict(description.labels),
        cpu_millicores=description.cpu_millicores,
        memory_bytes=description.memory_bytes,
        resources=dict(description.resources),
        taints=[
            {"key": taint.key, "value": taint.value, "effect": str(taint.effect)}
            for taint in description.taints
        ],
        schedulable=description.schedulable,
        memory_enforced_by=str(description.memory_enforced_by),
        notes=list(description.notes),
        reported_at=now,
    )


def _replace_nodes(executor: Executor, nodes: list[Node]) -> None:
    Node.objects.filter(executor=executor).exclude(name__in=[node.name for node in nodes]).delete()
    Node.objects.bulk_create(
        nodes,
        update_conflicts=True,
        unique_fields=["executor", "name"],
        update_fields=[
            "labels", "cpu_millicores", "memory_bytes", "resources", "taints", "schedulable", "memory_enforced_by",
            "notes", "reported_at",
        ],
    )  # fmt: skip


def _shape(nodes: Iterable[Node]) -> Shape:
    return frozenset(
        (
            node.name,
            node.cpu_millicores,
            node.memory_bytes,
            f"{node.schedulable}{sorted(node.labels.items())}{sorted(node.resources.items())}{node.taints}",
        )
        for node in nodes
    )
