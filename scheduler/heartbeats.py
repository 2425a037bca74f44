"""Record heartbeats: an executor is there, and this is what it has."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.executors.protocol import Heartbeat, NodeDescription
from scheduler.models import Executor, Node
from scheduler.models.fleet import TOLD_OF_NODES, NewsOfNode

log = logging.getLogger(__name__)
_warned_of: set[str] = set()
"""Executors whose nodes lack the node id label, as far as this process has said so."""


@transaction.atomic
def record_heartbeat(heartbeat: Heartbeat, *, config: Configuration | None = None) -> bool:
    """Write what the executor says of itself and its nodes; its leases live from the time of receipt.

    Nodes it does not name any more are gone. Returns whether there is room or a node there was not before. The same
    heartbeat again only moves the time: nodes of which nothing new is said are not even read.
    """
    heard = Executor.objects.hear(
        heartbeat.executor,
        pool=heartbeat.pool,
        version=heartbeat.version,
        agent_time=_time(heartbeat.agent_time),
        categories=[
            {"name": category.name, "disposition": str(category.disposition)}
            for category in heartbeat.categories
        ],
        tracked_node_labels=heartbeat.tracked_node_labels,
        honours=heartbeat.honours,
    )
    told = {node.name: _told(node) for node in heartbeat.nodes}
    news = Node.objects.news(heartbeat.executor, told.values())
    _write(heartbeat.executor, news, told, heard.at)
    _warn_of_unlabelled(heartbeat, (config or configuration()).node_id_label)
    changed = not heard.was_known or any(each.matters_to_rounds for each in news)
    if changed:
        Executor.objects.filter(name=heartbeat.executor).update(nodes_changed_at=heard.at)
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


def _time(agent_time: str) -> datetime | None:
    """The agent's clock; None when it does not tell."""
    try:
        told = datetime.fromisoformat(agent_time)
        # The database takes no offset of sixteen hours or more.
        return told.astimezone(UTC) if told.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _told(node: NodeDescription) -> dict[str, Any]:
    """What is told of a node, by the names of its columns."""
    taints = [{"key": each.key, "value": each.value, "effect": str(each.effect)} for each in node.taints]
    return {
        "name": node.name,
        "labels": dict(node.labels),
        "cpu_millicores": node.cpu_millicores,
        "memory_bytes": node.memory_bytes,
        "resources": dict(node.resources),
        "taints": taints,
        "schedulable": node.schedulable,
        "memory_enforced_by": str(node.memory_enforced_by),
        "notes": list(node.notes),
    }


def _write(
    executor: str, news: Sequence[NewsOfNode], told: Mapping[str, Mapping[str, Any]], now: datetime
) -> None:
    if gone := [each.name for each in news if each.is_gone]:
        Node.objects.filter(executor=executor, name__in=gone).delete()
    Node.objects.bulk_create(
        (Node(executor_id=executor, reported_at=now, **told[each.name]) for each in news if not each.is_gone),
        update_conflicts=True,
        unique_fields=["executor", "name"],
        update_fields=[*TOLD_OF_NODES, "reported_at"],
    )
