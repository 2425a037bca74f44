"""Cordons: have nothing new start in a queue, on an executor, on a node; or end that."""

import dataclasses
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.bodies import body_of
from lookout.api.endpoint import Endpoint, answer, permitted
from lookout.api.schema import described
from lookout.api.shapes import AtMost
from lookout.api.v1.executors import ExecutorView, executor_view
from lookout.api.v1.queues import QueueView, queue_view
from scheduler import tasks
from scheduler.actors import Permission
from scheduler.configured import configuration
from scheduler.cordoning import cordon_executor, cordon_node, cordon_queue
from scheduler.queries.fleet import executor_row
from scheduler.queries.queues import queue_detail


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CordonBody:
    """Closed or open, and why."""

    cordoned: bool
    reason: Annotated[str, AtMost(2_000)] = ""


class QueueCordon(Endpoint):
    """Whether a queue is closed."""

    @described("cordonQueue", tag="Queues", body=CordonBody, answer=QueueView, refusals=(400, 404))
    def put(self, request: Request, name: str) -> Response:
        """Stop or resume starting jobs of the queue; it takes jobs all the same. Twice changes nothing."""
        actor = permitted(request, Permission.CREATE_QUEUE)
        body = body_of(request, CordonBody)
        changed = cordon_queue(queue=name, cordoned=body.cordoned, reason=body.reason, actor=actor)
        _ring(changed=changed)
        return answer(queue_view(queue_detail(name)))


class ExecutorCordon(Endpoint):
    """Whether an executor is closed."""

    @described("cordonExecutor", tag="Executors", body=CordonBody, answer=ExecutorView, refusals=(400, 404))
    def put(self, request: Request, name: str) -> Response:
        """Have no new run start on any of its nodes, or end that; runs go on. Twice changes nothing."""
        actor = permitted(request, Permission.CORDON_NODES)
        body = body_of(request, CordonBody)
        changed = cordon_executor(executor=name, cordoned=body.cordoned, reason=body.reason, actor=actor)
        _ring(changed=changed)
        return answer(executor_view(executor_row(name, config=configuration())))


class NodeCordon(Endpoint):
    """Whether a node is closed."""

    @described("cordonNode", tag="Executors", body=CordonBody, answer=ExecutorView, refusals=(400, 404))
    def put(self, request: Request, name: str, node: str) -> Response:
        """Have no new run start on the node, or end that; runs go on. Answers with its executor."""
        actor = permitted(request, Permission.CORDON_NODES)
        body = body_of(request, CordonBody)
        changed = cordon_node(
            executor=name, node=node, cordoned=body.cordoned, reason=body.reason, actor=actor
        )
        _ring(changed=changed)
        return answer(executor_view(executor_row(name, config=configuration())))


def _ring(*, changed: bool) -> None:
    """What opens takes jobs; what closes changes why they wait."""
    if changed:
        tasks.ring_rounds()
