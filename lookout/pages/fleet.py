"""The fleet: what runs where, and which part of it is not well."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from lookout.pages.shell import PageRequest, page, show
from lookout.templatetags.figures import exact_duration, whole_duration
from policies.failures import InternalSubcategory
from scheduler.actors import Permission
from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.models import Executor, Node
from scheduler.models.clock import database_now
from scheduler.queries.fleet import ExecutorRow, NodeRow, executor_rows

LATE_AFTER_SECONDS = 30
"""Agents call every few seconds; one that has not for so long is late."""
SKEW_WORTH_SAYING_SECONDS = 5.0
SKEW_NOT_WORTH_A_FIGURE_SECONDS = 0.5
"""A heartbeat takes its time on the way; less than this is not the clock's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorView:
    """An executor with what its page says about it."""

    row: ExecutorRow
    state: str
    """healthy, late or silent"""
    deletes: tuple[str, ...]
    """Categories whose remains it deletes."""
    retains: tuple[str, ...]
    enforced_by: str
    clock: str
    """How far it is from the database's."""
    advice: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A sentence that nodes say about themselves, and which nodes."""

    text: str
    nodes: tuple[str, ...]


@require_safe
@page
def fleet(request: PageRequest) -> HttpResponse:
    """Executors, nodes, and what is wrong with either."""
    config = configuration()
    rows = executor_rows(config=config)
    now = database_now()
    nodes = [node for row in rows for node in row.nodes]
    context = {
        "now": now,
        "executors": [_view(row, config, now) for row in rows],
        "nodes": nodes,
        "notes": _notes(nodes),
        "silent": sum(row.is_silent for row in rows),
        "internal": list(InternalSubcategory),
        "closed": sum(not node.node.takes_runs for node in nodes),
        "may_cordon": Permission.CORDON_NODES in request.actor.permissions,
    }
    return show(request, "fleet/fleet.html", context, place="fleet", part="live")


def _view(row: ExecutorRow, config: Configuration, now: datetime) -> ExecutorView:
    executor = row.executor
    return ExecutorView(
        row=row,
        state=_state(row, now),
        deletes=_categories(executor, "Delete"),
        retains=_categories(executor, "Retain"),
        enforced_by=", ".join(dict.fromkeys(node.node.memory_enforced_by for node in row.nodes)),
        clock=_clock(executor.clock_skew_seconds),
        advice=tuple(_advice(row, config, now)),
    )


def _by(place: Executor | Node) -> str:
    who, why = place.cordoned_by, place.cordon_reason.rstrip(".")
    return f"{f' by {who}' if who else ''}{f': {why}' if why else ''}"


def _clock(skew_seconds: float) -> str:
    if abs(skew_seconds) < SKEW_NOT_WORTH_A_FIGURE_SECONDS:
        return "in step"
    return f"{exact_duration(abs(skew_seconds))} {'ahead' if skew_seconds > 0 else 'behind'}"


def _state(row: ExecutorRow, now: datetime) -> str:
    if row.is_silent:
        return "silent"
    return "late" if _age(row.executor, now) > LATE_AFTER_SECONDS else "healthy"


def _age(executor: Executor, now: datetime) -> float:
    return (now - executor.heartbeat_at).total_seconds() if executor.heartbeat_at else float("inf")


def _categories(executor: Executor, disposition: str) -> tuple[str, ...]:
    return tuple(c["name"] for c in executor.categories if c["disposition"] == disposition)


def _advice(row: ExecutorRow, config: Configuration, now: datetime) -> Iterator[str]:
    executor = row.executor
    if executor.cordoned:
        yield f"{executor.name} is cordoned{_by(executor)}. No new run starts on its nodes."
    for node in (each.node for each in row.nodes if each.node.cordoned):
        yield f"{node.name} is cordoned{_by(node)}. No new run starts on it."
    limit = exact_duration(config.executor_timeout_seconds)
    if _state(row, now) == "silent":
        yield f"{executor.name} has not called for {limit} or longer: its nodes do not count, and its leases have expired."
    elif _state(row, now) == "late":
        several = f"its {row.runs} leases expire, and their runs fail"
        then = f"{several if row.runs > 1 else 'its one lease expires, and the run fails'} as internal/lease-expired"
        yield (
            f"{executor.name} has not called for {whole_duration(_age(executor, now))}. "
            f"At {limit} {then if row.runs else 'its nodes count no more'}."
        )
    if config.node_id_label not in executor.tracked_node_labels:
        yield (
            f"{executor.name} does not track {config.node_id_label}, so avoidSameNode cannot work there. "
            "Add it to trackedNodeLabels and restart the agent."
        )
    elif unlabelled := [each for each in row.nodes if config.node_id_label not in each.node.labels]:
        yield (
            f"{len(unlabelled)} of the {len(row.nodes)} nodes of {executor.name} lack the label "
            f"{config.node_id_label} ({unlabelled[0].node.name} is one), so avoidSameNode cannot keep jobs away from "
            "them. Label them."
        )
    if abs(executor.clock_skew_seconds) > SKEW_WORTH_SAYING_SECONDS:
        side = "ahead of" if executor.clock_skew_seconds > 0 else "behind"
        yield (
            f"The clock of {executor.name} is {exact_duration(abs(executor.clock_skew_seconds))} {side} the "
            "database's. Nothing depends on it, but its logs will not line up."
        )


def _notes(nodes: Sequence[NodeRow]) -> list[Note]:
    by_text: dict[str, list[str]] = {}
    for row in nodes:
        for text in row.node.notes:
            by_text.setdefault(text, []).append(row.node.name)
    return [Note(text=text, nodes=tuple(names)) for text, names in by_text.items()]
