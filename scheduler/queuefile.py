"""Queue documents: what a queue is, in the model's format, checked wholly before use."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.actors import QueueVerb
from scheduler.fields import Fields
from scheduler.podspec import text_map
from scheduler.spelling import FREE, Problems, Shape, below, plain_copy

API_VERSION = "armadaproject.io/v1beta1"
KIND = "Queue"
MAX_NAMES = 1_000
"""Owners, groups, subjects and the like in one list."""
MAX_POLICIES = 100

_NAME = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_NAME_SAYS = "letters, digits, dashes, dots and underscores, beginning and ending with a letter or digit"
READ_ONLY = ("jobs", "cordonedBy", "cordonReason")
"""What answers have besides."""
_SHAPE: Shape = {
    "apiVersion": FREE,
    "kind": FREE,
    "name": FREE,
    "priorityFactor": FREE,
    "userOwners": FREE,
    "groupOwners": FREE,
    "permissions": {"subjects": {"kind": FREE, "name": FREE}, "verbs": FREE},
    "cordoned": FREE,
    "labels": FREE,
    "retryPolicies": FREE,
    **dict.fromkeys(READ_ONLY, FREE),
    "resourceLimits": FREE,
    "resourceLimitsByPriorityClassName": FREE,
    "labelsDeprecated": FREE,
}
_ABSENT = {
    "resourceLimits": "resourceLimits is not supported. Remove it.",
    "resourceLimitsByPriorityClassName": (
        "Single queues have no limits of their own. Set them for all by scheduling.priorityClasses; remove it here."
    ),
    "labelsDeprecated": "labelsDeprecated is not supported. Use labels.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A person or a group."""

    kind: str
    """User or Group."""
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What some people may do with a queue's jobs."""

    subjects: tuple[Subject, ...]
    verbs: tuple[QueueVerb, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSpec:
    """Everything people decide about a queue. Writing one replaces all of it."""

    name: str
    priority_factor: float = 1.0
    owners: tuple[str, ...] = ()
    group_owners: tuple[str, ...] = ()
    permissions: tuple[Grant, ...] = ()
    cordoned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    retry_policies: tuple[str, ...] = ()
    """In order of precedence; the first decides."""


def parse_queue(document: object) -> QueueSpec:
    """The queue of an object that was read from YAML or JSON. Raises DocumentInvalid with every problem.

    What is READ_ONLY of an answer may stay in it and means nothing.
    """
    problems = Problems()
    queue = Fields(plain_copy(document, _SHAPE, problems) or {}, "", problems)
    problems.raise_any()
    _read_kind(queue)
    queue.refuse(_ABSENT)
    for name in READ_ONLY:
        queue.take(name)
    spec = QueueSpec(
        name=queue.text("name", most=63, required=True, pattern=_NAME, says=_NAME_SAYS),
        priority_factor=queue.number("priorityFactor", least=1, most=1e9, default=1.0),
        owners=queue.lines("userOwners", most=MAX_NAMES, longest=253),
        group_owners=queue.lines("groupOwners", most=MAX_NAMES, longest=253),
        permissions=tuple(
            _read_grant(value, path, problems) for path, value in queue.each("permissions", most=MAX_NAMES)
        ),
        cordoned=queue.flag("cordoned"),
        labels=_read_labels(queue),
        retry_policies=tuple(dict.fromkeys(queue.lines("retryPolicies", most=MAX_POLICIES, longest=63))),
    )
    queue.refuse_unknown()
    problems.raise_any()
    return spec


def queue_document(spec: QueueSpec) -> dict[str, Any]:
    """The queue as a document that `parse_queue` reads back to the same."""
    return {
        "name": spec.name,
        "priorityFactor": spec.priority_factor,
        "userOwners": list(spec.owners),
        "groupOwners": list(spec.group_owners),
        "permissions": [grant_document(grant) for grant in spec.permissions],
        "cordoned": spec.cordoned,
        "labels": dict(spec.labels),
        "retryPolicies": list(spec.retry_policies),
    }


def grant_document(grant: Grant) -> dict[str, Any]:
    """One entry of `permissions`."""
    return {
        "subjects": [{"kind": subject.kind, "name": subject.name} for subject in grant.subjects],
        "verbs": [str(verb) for verb in grant.verbs],
    }


def _read_kind(queue: Fields) -> None:
    if queue.take("apiVersion") not in (None, API_VERSION):
        queue.note("apiVersion", f"Must be {API_VERSION} or absent.")
    if queue.take("kind") not in (None, KIND):
        queue.note("kind", f"Must be {KIND} or absent.")


def _read_grant(value: object, path: str, problems: Problems) -> Grant:
    grant = Fields(value, path, problems)
    subjects = tuple(
        _read_subject(Fields(item, at, problems))
        for at, item in grant.each("subjects", most=MAX_NAMES, required=True)
    )
    verbs = []
    for at, verb in grant.each("verbs", most=MAX_NAMES, required=True):
        if verb in list(QueueVerb):
            verbs.append(QueueVerb(verb))
        else:
            problems.add(at, f"Takes one of {', '.join(QueueVerb)}.")
    grant.refuse_unknown()
    return Grant(subjects=subjects, verbs=tuple(verbs))


def _read_subject(subject: Fields) -> Subject:
    kind = subject.text("kind", most=16, required=True)
    if kind not in ("", "User", "Group"):
        subject.note("kind", "Takes User or Group.")
    name = subject.text("name", most=253, required=True)
    subject.refuse_unknown()
    return Subject(kind=kind, name=name)


def _read_labels(queue: Fields) -> dict[str, str]:
    labels = text_map(queue, "labels", longest=253)
    for key, value in labels.items():
        if not value:
            queue.problems.add(below("labels", key), "Must not be empty.")
    return labels
