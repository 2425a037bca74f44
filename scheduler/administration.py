"""Make, change and delete queues, and attach retry policies to them. Every change is kept in the change log."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction

from scheduler.actors import Actor, Permission
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound
from scheduler.fields import is_line
from scheduler.models import Change, Job, JobSet, Queue, QueuePolicy, RetryPolicy
from scheduler.queries.queues import attached_policies, queue_spec
from scheduler.queuefile import QueueSpec, grant_document, parse_queue, queue_document
from scheduler.states import ChangeKind


@transaction.atomic
def create_queue(*, spec: QueueSpec, actor: Actor) -> Queue:
    """Make a queue with its policies attached.

    Raises AlreadyExists for a name in use, Invalid for policies that do not exist, DocumentInvalid for a
    specification that makes no sense.
    """
    actor.require(Permission.CREATE_QUEUE)
    spec = _checked(spec)
    _require_policies(spec.retry_policies)
    try:
        with transaction.atomic():
            queue = Queue.objects.create(name=spec.name, **_columns(spec))
    except IntegrityError as error:
        raise AlreadyExists("queue", spec.name) from error
    _attach(queue, spec.retry_policies)
    _log(ChangeKind.CREATE_QUEUE, actor, before=None, after=spec)
    return queue


@transaction.atomic
def update_queue(*, spec: QueueSpec, actor: Actor) -> bool:
    """Replace everything about a queue; what the specification leaves out becomes its default.

    Returns whether anything changed. Raises NotFound, and otherwise as `create_queue` does.
    """
    actor.require(Permission.CREATE_QUEUE)
    spec = _checked(spec)
    queue = _locked(spec.name)
    return _write(queue, _spec_of(queue), spec, ChangeKind.UPDATE_QUEUE, actor)


@transaction.atomic
def attach_policies(*, queue: str, policies: Sequence[str], actor: Actor) -> bool:
    """Replace the list of a queue's policies, in order of precedence; a repeated name keeps its first place.

    Returns whether anything changed. Raises NotFound for the queue, Invalid for policies that do not exist.
    """
    actor.require(Permission.CREATE_QUEUE)
    row = _locked(queue)
    before = _spec_of(row)
    after = _checked(replace(before, retry_policies=tuple(policies)))
    return _write(row, before, after, ChangeKind.ATTACH_POLICIES, actor)


@transaction.atomic
def delete_queue(*, name: str, actor: Actor) -> bool:
    """Delete a queue that never had a job, with its attachments and empty job sets.

    Returns whether there was one. Raises Conflict when it has jobs: they are kept for good.
    """
    actor.require(Permission.DELETE_QUEUE)
    queue = Queue.objects.select_for_update().filter(name=name).first() if is_line(name) else None
    if queue is None:
        return False
    _refuse_with_jobs(name)
    before = _spec_of(queue)
    QueuePolicy.objects.filter(queue=queue).delete()
    JobSet.objects.filter(queue=queue).delete()
    queue.delete()
    _log(ChangeKind.DELETE_QUEUE, actor, before=before, after=None)
    return True


def _checked(spec: QueueSpec) -> QueueSpec:
    """The specification as its own document reads, whoever built it."""
    return parse_queue(queue_document(spec))


def _locked(name: str) -> Queue:
    rows = Queue.objects.select_for_update(no_key=True)
    queue = rows.filter(name=name).first() if is_line(name) else None
    if queue is None:
        raise NotFound("queue", name)
    return queue


def _spec_of(queue: Queue) -> QueueSpec:
    return queue_spec(queue, attached_policies([queue.name]).get(queue.name, ()))


def _columns(spec: QueueSpec) -> dict[str, Any]:
    return {
        "priority_factor": spec.priority_factor,
        "owners": list(spec.owners),
        "group_owners": list(spec.group_owners),
        "permissions": [grant_document(grant) for grant in spec.permissions],
        "labels": dict(spec.labels),
        "cordoned": spec.cordoned,
    }


def _write(queue: Queue, before: QueueSpec, after: QueueSpec, kind: ChangeKind, actor: Actor) -> bool:
    _require_policies(after.retry_policies)
    if before == after:
        return False
    if _columns(before) != _columns(after):
        Queue.objects.filter(name=queue.name).update(**_columns(after))
    if before.retry_policies != after.retry_policies:
        QueuePolicy.objects.filter(queue=queue).delete()
        _attach(queue, after.retry_policies)
    _log(kind, actor, before=before, after=after)
    return True


def _attach(queue: Queue, policies: Sequence[str]) -> None:
    QueuePolicy.objects.bulk_create(
        QueuePolicy(queue=queue, policy_id=policy, ordinal=ordinal) for ordinal, policy in enumerate(policies)
    )


def _require_policies(names: Sequence[str]) -> None:
    """Keep the policies from being deleted until the commit, or say which do not exist."""
    if not names:
        return
    statement = "SELECT * FROM scheduler_retrypolicy WHERE name = ANY(%s) ORDER BY name FOR KEY SHARE"
    found = {policy.name for policy in RetryPolicy.objects.raw(statement, [list(names)])}
    missing = [name for name in names if name not in found]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        raise Invalid(f"retry policies do not exist: {listed}", path="retryPolicies", names=missing)


def _refuse_with_jobs(name: str) -> None:
    if Job.objects.filter(queue=name).exists():
        raise Conflict(
            f"Queue '{name}' has jobs, and jobs are kept. Cordon it instead: it starts no more of them."
        )


def _log(kind: ChangeKind, actor: Actor, *, before: QueueSpec | None, after: QueueSpec | None) -> None:
    spec = after or before
    assert spec is not None
    Change.objects.create(
        actor=actor.name,
        kind=kind,
        subject=spec.name,
        before=_shown(before, kind) if before else None,
        after=_shown(after, kind) if after else None,
    )


def _shown(spec: QueueSpec, kind: ChangeKind) -> dict[str, Any]:
    if kind is ChangeKind.ATTACH_POLICIES:
        return {"retryPolicies": list(spec.retry_policies)}
    return queue_document(spec)
