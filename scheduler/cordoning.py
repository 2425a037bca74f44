"""Cordon queues, executors and nodes, so that nothing new starts there; and take away executors that are gone."""

from typing import Any

from django.db import transaction

from scheduler.actors import Actor, Permission
from scheduler.config import Configuration
from scheduler.errors import Conflict, NotFound
from scheduler.fields import is_line
from scheduler.models import Change, Executor, Node, Queue, Run
from scheduler.queries.chosen import check_reason
from scheduler.queries.fleet import heard_of
from scheduler.states import ACTIVE_RUN_STATES, ChangeKind


@transaction.atomic
def cordon_queue(*, queue: str, cordoned: bool, reason: str = "", actor: Actor) -> bool:
    """Stop or resume starting jobs of a queue; it takes jobs all the same. Returns whether anything changed.

    Raises NotPermitted, Invalid for a reason that cannot be kept, NotFound.
    """
    actor.require(Permission.CREATE_QUEUE)
    check_reason(reason)
    found = _locked_queue(queue)
    if found.cordoned == cordoned:
        return False
    Queue.objects.filter(name=queue).update(cordoned=cordoned)
    _log(ChangeKind.CORDON_QUEUE, queue, cordoned=cordoned, reason=reason, actor=actor)
    return True


@transaction.atomic
def cordon_executor(*, executor: str, cordoned: bool, reason: str = "", actor: Actor) -> bool:
    """Have no new run start on any node of an executor, or end that; runs go on. Returns whether anything changed.

    Raises NotPermitted, Invalid for a reason that cannot be kept, NotFound.
    """
    actor.require(Permission.CORDON_NODES)
    check_reason(reason)
    found = _locked_executor(executor)
    if found.cordoned == cordoned:
        return False
    Executor.objects.filter(name=executor).update(**_columns(actor, cordoned=cordoned, reason=reason))
    _log(ChangeKind.CORDON_EXECUTOR, executor, cordoned=cordoned, reason=reason, actor=actor)
    return True


@transaction.atomic
def cordon_node(*, executor: str, node: str, cordoned: bool, reason: str = "", actor: Actor) -> bool:
    """Have no new run start on a node, or end that; runs go on. Returns whether anything changed.

    Raises NotPermitted, Invalid for a reason that cannot be kept, NotFound.
    """
    actor.require(Permission.CORDON_NODES)
    check_reason(reason)
    # Rounds hold executors while they write leases: none comes to the node once this is committed.
    _locked_executor(executor)
    rows = Node.objects.filter(executor=executor, name=node)
    found = rows.first() if is_line(node) else None
    if found is None:
        raise NotFound("node", node)
    if found.cordoned == cordoned:
        return False
    rows.update(**_columns(actor, cordoned=cordoned, reason=reason))
    _log(ChangeKind.CORDON_NODE, f"{executor}/{node}", cordoned=cordoned, reason=reason, actor=actor)
    return True


@transaction.atomic
def delete_executor(*, name: str, actor: Actor, config: Configuration) -> bool:
    """Forget an executor that is silent, or whose agent was stopped, and that has no active run; with its nodes.

    Its runs stay as they are. Returns whether there was one; should it call again, it is there again. Raises NotPermitted, Conflict.
    """
    actor.require(Permission.CORDON_NODES)
    if (executor := _executor(name)) is None:
        return False
    # An agent that is stopped says that its nodes take no more runs.
    if Node.objects.filter(heard_of(config, path="executor__"), executor=name, schedulable=True).exists():
        raise Conflict(
            f"The agent of executor '{name}' still reports. Stop it first, or cordon the executor."
        )
    if Run.objects.filter(executor=name, state__in=ACTIVE_RUN_STATES).exists():
        raise Conflict(
            f"Executor '{name}' has active runs. They expire as it is silent: try again in a moment."
        )
    executor.delete()
    Change.objects.create(
        actor=actor.name,
        kind=ChangeKind.DELETE_EXECUTOR,
        subject=name,
        before={"pool": executor.pool_id},
    )
    return True


def _locked_queue(name: str) -> Queue:
    rows = Queue.objects.select_for_update(no_key=True)
    queue = rows.filter(name=name).first() if is_line(name) else None
    if queue is None:
        raise NotFound("queue", name)
    return queue


def _locked_executor(name: str) -> Executor:
    if (executor := _executor(name)) is None:
        raise NotFound("executor", name)
    return executor


def _executor(name: str) -> Executor | None:
    """The executor, locked; heartbeats and rounds wait."""
    return Executor.objects.select_for_update().filter(name=name).first() if is_line(name) else None


def _columns(actor: Actor, *, cordoned: bool, reason: str) -> dict[str, Any]:
    """Who closed it and why stays there while it is closed."""
    return {
        "cordoned": cordoned,
        "cordoned_by": actor.name if cordoned else "",
        "cordon_reason": reason if cordoned else "",
    }


def _log(kind: ChangeKind, subject: str, *, cordoned: bool, reason: str, actor: Actor) -> None:
    Change.objects.create(
        actor=actor.name,
        kind=kind,
        subject=subject,
        before={"cordoned": not cordoned},
        after={"cordoned": cordoned},
        note=reason,
    )
