"""Who asks: a person or program, and what it may do."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Permission(StrEnum):
    """Permissions a role may carry."""

    CREATE_QUEUE = "create_queue"
    DELETE_QUEUE = "delete_queue"
    CREATE_RETRY_POLICY = "create_retry_policy"
    UPDATE_RETRY_POLICY = "update_retry_policy"
    DELETE_RETRY_POLICY = "delete_retry_policy"
    SUBMIT_ANY_JOBS = "submit_any_jobs"
    CANCEL_ANY_JOBS = "cancel_any_jobs"
    REPRIORITIZE_ANY_JOBS = "reprioritize_any_jobs"
    PREEMPT_ANY_JOBS = "preempt_any_jobs"
    CORDON_NODES = "cordon_nodes"


class QueueVerb(StrEnum):
    """What a queue may let its people do with its jobs."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    REPRIORITIZE = "reprioritize"
    PREEMPT = "preempt"


class Role(StrEnum):
    """Named sets of permissions. Everybody who is signed in reads everything."""

    READER = "reader"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def permissions(self) -> frozenset[Permission]:
        """What a person of this role may do."""
        if self is Role.READER:
            return frozenset()
        if self is Role.SUBMITTER:
            return frozenset({Permission.SUBMIT_ANY_JOBS})
        return frozenset(Permission)


class NotPermitted(Exception):
    """You may not do this."""

    def __init__(self, actor: "Actor", wanted: str, *, queue: str = "") -> None:
        """`queue` is one of several, where the others are the actor's."""
        lacks = f"'{actor.name}' lacks the permission {wanted}."
        fix = f"Jobs of queue '{queue}' are meant too. Name your queues, or ask an operator for it."
        super().__init__(f"{lacks} {fix if queue else 'Ask an operator for it.'}")
        self.wanted = wanted


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """The one on whose behalf a verb runs."""

    name: str
    permissions: frozenset[Permission] = frozenset()
    groups: frozenset[str] = field(default_factory=frozenset)

    def require(self, permission: Permission) -> None:
        """Raises NotPermitted without the permission."""
        if permission not in self.permissions:
            raise NotPermitted(self, permission)

    def belongs_to(self, *, users: Iterable[str], groups: Iterable[str]) -> bool:
        """Named in one of two lists, in person or by a group."""
        return self.name in users or not self.groups.isdisjoint(groups)
