"""Queues: the fields people decide about, and how many jobs of each state they hold."""

import dataclasses
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import body_of, document_of, query_of
from lookout.api.endpoint import Endpoint, NoQuery, Nothing, answer, permitted
from lookout.api.schema import described
from lookout.api.shapes import AtMost
from policies.problems import DocumentInvalid, Problem
from scheduler import tasks
from scheduler.actors import Permission, QueueVerb
from scheduler.administration import attach_policies, create_queue, delete_queue, update_queue
from scheduler.queries.queues import QueueRow, queue_detail, queue_rows
from scheduler.queuefile import Grant, QueueSpec, parse_queue
from scheduler.spelling import spelled
from scheduler.states import JobState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SubjectView:
    """A person or a group."""

    kind: str
    """User or Group."""
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GrantView:
    """What some people may do with a queue's jobs."""

    subjects: tuple[SubjectView, ...]
    verbs: tuple[QueueVerb, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class QueueBody:
    """A queue as it is written: all of it, what is left out becomes its default."""

    name: str
    api_version: str = ""
    kind: str = ""
    priority_factor: float = 1.0
    """At least 1. A queue with twice the factor gets half as much."""
    user_owners: tuple[str, ...] = ()
    """They may do everything with the queue's jobs."""
    group_owners: tuple[str, ...] = ()
    permissions: tuple[GrantView, ...] = ()
    cordoned: bool = False
    """Takes jobs and starts none."""
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    retry_policies: tuple[str, ...] = ()
    """In order of precedence; the first decides."""
    jobs: dict[str, int] = dataclasses.field(default_factory=dict)
    """Means nothing here; allowed so that an answer can be edited and sent back."""
    cordoned_by: str = ""
    """Likewise."""
    cordon_reason: str = ""
    """Likewise: it is said with the request that cordons."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class QueueView:
    """A queue."""

    name: str
    priority_factor: float
    user_owners: tuple[str, ...]
    group_owners: tuple[str, ...]
    permissions: tuple[GrantView, ...]
    cordoned: bool
    """It takes jobs and starts none."""
    cordoned_by: str
    cordon_reason: str
    labels: dict[str, str]
    retry_policies: tuple[str, ...]
    """In order of precedence; the first decides."""
    jobs: dict[str, int]
    """State → number of jobs, every state named."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class QueueList:
    """Every queue, by name."""

    queues: tuple[QueueView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AttachmentBody:
    """The policies of a queue, in order of precedence. They replace those it had."""

    retry_policies: Annotated[tuple[str, ...], AtMost(100)]


def queue_view(row: QueueRow) -> QueueView:
    """A queue as it travels."""
    spec = row.spec
    return QueueView(
        name=spec.name,
        priority_factor=spec.priority_factor,
        user_owners=spec.owners,
        group_owners=spec.group_owners,
        permissions=tuple(_grant_view(grant) for grant in spec.permissions),
        cordoned=spec.cordoned,
        cordoned_by=row.cordon.by,
        cordon_reason=row.cordon.reason,
        labels=dict(spec.labels),
        retry_policies=spec.retry_policies,
        jobs={str(state): row.jobs.get(state, 0) for state in JobState},
    )


def _grant_view(grant: Grant) -> GrantView:
    subjects = tuple(SubjectView(kind=subject.kind, name=subject.name) for subject in grant.subjects)
    return GrantView(subjects=subjects, verbs=grant.verbs)


class Queues(Endpoint):
    """All of them."""

    @described("listQueues", tag="Queues", answer=QueueList)
    def get(self, request: Request) -> Response:
        """Every queue, by name."""
        query_of(request, NoQuery)
        return answer(QueueList(queues=tuple(queue_view(row) for row in queue_rows())))

    @described(
        "createQueue",
        tag="Queues",
        body=QueueBody,
        yaml=True,
        answer=QueueView,
        status=201,
        refusals=(400, 409),
    )
    def post(self, request: Request) -> Response:
        """Make a queue. A name in use is refused."""
        actor = permitted(request, Permission.CREATE_QUEUE)
        body = document_of(request)
        document = body.to_object()
        with body.told_with_lines():
            spec = parse_queue(document)
        create_queue(spec=spec, actor=actor)
        return answer(queue_view(queue_detail(spec.name)), status=201)


class QueueEndpoint(Endpoint):
    """One queue."""

    @described("getQueue", tag="Queues", answer=QueueView, refusals=(404,))
    def get(self, request: Request, name: str) -> Response:
        """One queue."""
        query_of(request, NoQuery)
        return answer(queue_view(queue_detail(name)))

    @described("updateQueue", tag="Queues", body=QueueBody, yaml=True, answer=QueueView, refusals=(400, 404))
    def put(self, request: Request, name: str) -> Response:
        """Replace everything about a queue: what the body leaves out becomes its default.

        The name may be left out; another than the address has is refused.
        """
        actor = permitted(request, Permission.CREATE_QUEUE)
        body = document_of(request)
        document = body.to_object()
        with body.told_with_lines():
            spec = _spec_named(name, document)
        if update_queue(spec=spec, actor=actor):
            tasks.ring_rounds()
        return answer(queue_view(queue_detail(name)))

    @described("deleteQueue", tag="Queues", answer=Nothing, refusals=(409,))
    def delete(self, request: Request, name: str) -> Response:
        """Delete a queue that never had a job; jobs are kept. One that does not exist is no error."""
        delete_queue(name=name, actor=actor_of(request))
        return answer()


class QueuePolicies(Endpoint):
    """The policies of a queue."""

    @described(
        "attachRetryPolicies", tag="Queues", body=AttachmentBody, answer=QueueView, refusals=(400, 404)
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace the policies of a queue, and nothing else of it."""
        actor = permitted(request, Permission.CREATE_QUEUE)
        body = body_of(request, AttachmentBody)
        attach_policies(queue=name, policies=body.retry_policies, actor=actor)
        return answer(queue_view(queue_detail(name)))


def _spec_named(name: str, document: object) -> QueueSpec:
    if isinstance(document, dict) and not spelled(document, "name"):
        document = {key: value for key, value in document.items() if key.lower() != "name"} | {"name": name}
    spec = parse_queue(document)
    if spec.name != name:
        message = f"The body names '{spec.name}', the address '{name}'. A queue keeps its name: leave it out."
        raise DocumentInvalid([Problem(path="name", message=message, code="other_name")])
    return spec
