"""Publish retry policies: every write makes an immutable, numbered version. Every change is kept in the change log."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from policies.documents import policy_document, policy_yaml
from policies.policy import Policy
from policies.problems import DocumentInvalid
from scheduler.actors import Actor, Permission
from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound
from scheduler.fields import is_line
from scheduler.models import Change, QueuePolicy, RetryPolicy, RetryPolicyVersion
from scheduler.queries.policies import current_versions, deployment_check
from scheduler.queries.queues import attached_policies
from scheduler.states import ChangeKind

MAX_NOTE_LENGTH = 2_000
MAX_TEXT_LENGTH = 262_144


class EditConflict(Conflict):
    """Somebody published another version since the one an edit is based on."""

    def __init__(self, current: RetryPolicyVersion) -> None:
        super().__init__(
            f"Policy '{current.policy_name}' is at version {current.version} by now, published by "
            f"'{current.author}'. Look at what changed there, and save your edit on top of it."
        )
        self.current_version = current.version


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What became of a write."""

    name: str
    version: int
    """The version that decides now."""
    created: bool
    """The policy is new."""
    changed: bool
    """False: the document was the current one, and no version was made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deleted:
    """What became of a deletion."""

    existed: bool
    detached: tuple[str, ...] = ()
    """Queues that had the policy, by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """A document about to be published."""

    policy: Policy
    text: str
    note: str
    actor: Actor
    force: bool
    config: Configuration


@transaction.atomic
def create_policy(
    *, policy: Policy, text: str = "", note: str = "", actor: Actor, force: bool = False,
    config: Configuration | None = None,
) -> Published:  # fmt: skip
    """Publish a policy of a new name. Numbers go on where a deleted policy of that name left off.

    `text` is the document as typed, empty when it came as an object. Raises AlreadyExists, and
    DocumentInvalid when the executors heard of cannot do what it asks and `force` is not set.
    """
    actor.require(Permission.CREATE_RETRY_POLICY)
    return _create(_draft(policy, text, note, actor, force=force, config=config))


@transaction.atomic
def update_policy(
    *, policy: Policy, text: str = "", note: str = "", based_on: int | None = None, actor: Actor,
    force: bool = False, config: Configuration | None = None,
) -> Published:  # fmt: skip
    """Publish the next version of a policy. The current document again makes none.

    `based_on` is the version whose text the author edited: where another document is current by now,
    EditConflict; an edit of nothing but comments is a version. Raises NotFound, and DocumentInvalid as
    `create_policy` does.
    """
    actor.require(Permission.UPDATE_RETRY_POLICY)
    row = _locked(policy.name)
    if row is None:
        raise NotFound("retry policy", policy.name)
    return _update(row, _draft(policy, text, note, actor, force=force, config=config), based_on)


@transaction.atomic
def apply_policy(
    *, policy: Policy, text: str = "", note: str = "", actor: Actor, force: bool = False,
    config: Configuration | None = None,
) -> Published:  # fmt: skip
    """Publish a policy whether or not one of its name exists. Applying the same twice changes nothing.

    Raises DocumentInvalid as `create_policy` does.
    """
    row = _locked(policy.name)
    actor.require(Permission.UPDATE_RETRY_POLICY if row else Permission.CREATE_RETRY_POLICY)
    draft = _draft(policy, text, note, actor, force=force, config=config)
    try:
        return _update(row, draft, None) if row else _create(draft)
    except AlreadyExists:  # somebody made it since we looked
        row = _locked(policy.name)
        if row is None:
            raise
        actor.require(Permission.UPDATE_RETRY_POLICY)
        return _update(row, draft, None)


@transaction.atomic
def delete_policy(*, name: str, detach: bool = False, actor: Actor) -> Deleted:
    """Delete a policy; its versions are kept for the decisions that refer to them. An unknown name is fine.

    Raises Conflict, naming the queues it is attached to, unless it is to be detached from them as well.
    """
    actor.require(Permission.DELETE_RETRY_POLICY)
    row = _locked(name)
    if row is None:
        return Deleted(existed=False)
    attached = sorted(QueuePolicy.objects.filter(policy=row).values_list("queue_id", flat=True))
    if attached and not detach:
        raise Conflict(_still_attached(name, attached), names=attached)
    before = current_versions([row]).get(name)
    _detach(name, attached, actor)
    row.delete()
    Change.objects.create(
        actor=actor.name, kind=ChangeKind.DELETE_POLICY, subject=name, before=_kept(before), after=None
    )
    return Deleted(existed=True, detached=tuple(attached))


def _draft(
    policy: Policy, text: str, note: str, actor: Actor, *, force: bool, config: Configuration | None
) -> _Draft:
    if "\x00" in note or len(note) > MAX_NOTE_LENGTH:
        raise Invalid(f"A note has at most {MAX_NOTE_LENGTH:,} characters. Shorten it.", path="note")
    if "\x00" in text or len(text) > MAX_TEXT_LENGTH:
        raise Invalid(f"A document has at most {MAX_TEXT_LENGTH:,} characters. Shorten it.")
    return _Draft(
        policy=policy, text=text, note=note, actor=actor, force=force, config=config or configuration()
    )


def _locked(name: str) -> RetryPolicy | None:
    """The policy; no queue can be attached to it, and nobody else publish it, until the commit."""
    return RetryPolicy.objects.select_for_update().filter(name=name).first() if is_line(name) else None


def _create(draft: _Draft) -> Published:
    name = draft.policy.name
    try:
        with transaction.atomic():
            row = RetryPolicy.objects.create(name=name)
    except IntegrityError as error:
        raise AlreadyExists("retry policy", name) from error
    last = RetryPolicyVersion.objects.filter(policy_name=name).aggregate(last=Max("version"))["last"] or 0
    return _publish(row, draft, number=last + 1, before=None)


def _update(row: RetryPolicy, draft: _Draft, based_on: int | None) -> Published:
    current = current_versions([row])[row.name]
    if _says_the_same(draft, current, is_edit=based_on is not None):
        return Published(name=row.name, version=current.version, created=False, changed=False)
    if based_on is not None and based_on != current.version:
        raise EditConflict(current)
    return _publish(row, draft, number=current.version + 1, before=current)


def _says_the_same(draft: _Draft, current: RetryPolicyVersion, *, is_edit: bool) -> bool:
    """The document is the current one. Who edits its text may have meant a comment: then that counts, too."""
    if policy_document(draft.policy) != current.document:
        return False
    if not is_edit or not draft.text:
        return True
    shown = current.text or policy_yaml(draft.policy)
    return draft.text.split() == shown.split()


def _publish(row: RetryPolicy, draft: _Draft, *, number: int, before: RetryPolicyVersion | None) -> Published:
    problems = () if draft.force else deployment_check(draft.policy, config=draft.config).problems
    if problems:
        raise DocumentInvalid(problems)
    version = RetryPolicyVersion.objects.create(
        policy_name=row.name,
        version=number,
        document=policy_document(draft.policy),
        text=draft.text,
        note=draft.note,
        author=draft.actor.name,
    )
    row.version = number
    row.save()
    kind = ChangeKind.UPDATE_POLICY if before else ChangeKind.CREATE_POLICY
    Change.objects.create(
        actor=draft.actor.name,
        kind=kind,
        subject=row.name,
        before=_kept(before),
        after=_kept(version),
        note=draft.note,
    )
    return Published(name=row.name, version=number, created=before is None, changed=True)


def _kept(version: RetryPolicyVersion | None) -> dict[str, Any] | None:
    return {"version": version.version, "document": version.document} if version else None


def _still_attached(name: str, queues: Iterable[str]) -> str:
    listed = ", ".join(f"'{queue}'" for queue in queues)
    word = "queues" if "," in listed else "queue"
    return f"Policy '{name}' is attached to {word} {listed}. Detach it first, or delete it with detach."


def _detach(name: str, queues: list[str], actor: Actor) -> None:
    before = attached_policies(queues)
    QueuePolicy.objects.filter(policy=name).delete()
    Change.objects.bulk_create(
        Change(
            actor=actor.name,
            kind=ChangeKind.ATTACH_POLICIES,
            subject=queue,
            before={"retryPolicies": list(before[queue])},
            after={"retryPolicies": [policy for policy in before[queue] if policy != name]},
            note=f"Policy '{name}' was deleted.",
        )
        for queue in queues
    )
