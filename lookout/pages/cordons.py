"""Questions before something is closed, opened or taken away: queues, executors, nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from lookout.pages.shell import PageRequest, page, show
from scheduler import tasks
from scheduler.actors import Permission
from scheduler.configured import configuration
from scheduler.cordoning import cordon_executor, cordon_node, cordon_queue, delete_executor
from scheduler.errors import Conflict, NotFound
from scheduler.queries.fleet import executor_row
from scheduler.queries.queues import queue_detail

READ = ["GET", "HEAD", "POST"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Something that can be closed."""

    what: str
    """Such as `node local-1`."""
    section: str
    """The part of the dashboard it belongs to."""
    back: str
    """Where its page is."""
    is_closed: bool
    by: str = ""
    why: str = ""
    follows: str
    """What a cordon means here."""


@require_http_methods(READ)
@page
def of_queue(request: PageRequest, name: str) -> HttpResponse:
    """The question about a queue; sent, it is done."""
    request.actor.require(Permission.CREATE_QUEUE)
    place = Place(
        what=f"queue {name}",
        section="queues",
        back=reverse("queue", args=[name]),
        is_closed=queue_detail(name).spec.cordoned,
        follows="Its jobs that run go on. It takes new ones, and starts none until it is uncordoned.",
    )
    return _answer(
        request,
        place,
        lambda cordoned, reason: cordon_queue(
            queue=name, cordoned=cordoned, reason=reason, actor=request.actor
        ),
    )


@require_http_methods(READ)
@page
def of_executor(request: PageRequest, name: str) -> HttpResponse:
    """The question about an executor; sent, it is done."""
    request.actor.require(Permission.CORDON_NODES)
    executor = executor_row(name, config=configuration()).executor
    place = Place(
        what=f"executor {name}",
        section="fleet",
        back=reverse("fleet"),
        is_closed=executor.cordoned,
        by=executor.cordoned_by,
        why=executor.cordon_reason,
        follows="Runs on its nodes go on. No new one starts there until it is uncordoned.",
    )
    return _answer(
        request,
        place,
        lambda cordoned, reason: cordon_executor(
            executor=name, cordoned=cordoned, reason=reason, actor=request.actor
        ),
    )


@require_http_methods(READ)
@page
def of_node(request: PageRequest, name: str, node: str) -> HttpResponse:
    """The question about a node of an executor; sent, it is done."""
    request.actor.require(Permission.CORDON_NODES)
    rows = executor_row(name, config=configuration()).nodes
    found = next((row.node for row in rows if row.node.name == node), None)
    if found is None:
        raise NotFound("node", node)
    place = Place(
        what=f"node {node}",
        section="fleet",
        back=reverse("fleet"),
        is_closed=found.cordoned,
        by=found.cordoned_by,
        why=found.cordon_reason,
        follows="Runs on it go on. No new one starts there until it is uncordoned.",
    )
    return _answer(
        request,
        place,
        lambda cordoned, reason: cordon_node(
            executor=name, node=node, cordoned=cordoned, reason=reason, actor=request.actor
        ),
    )


@require_http_methods(READ)
@page
def remove_executor(request: PageRequest, name: str) -> HttpResponse:
    """The question before an executor is taken away; sent, it is."""
    request.actor.require(Permission.CORDON_NODES)
    row = executor_row(name, config=configuration())
    if request.method != "POST":
        return show(
            request, "cordon/delete.html", {"row": row, "problem": ""}, place="fleet", part="question"
        )
    try:
        delete_executor(name=name, actor=request.actor, config=configuration())
    except Conflict as error:
        return show(
            request, "cordon/delete.html", {"row": row, "problem": str(error)}, place="fleet", status=409
        )
    messages.success(request, f"Executor {name} was deleted.")
    return redirect("fleet")


def _answer(request: PageRequest, place: Place, verb: Callable[[bool, str], bool]) -> HttpResponse:
    if request.method != "POST":
        return show(request, "cordon/question.html", {"of": place}, place=place.section, part="question")
    cordoned = request.POST.get("cordoned") == "true"
    if verb(cordoned, request.POST.get("reason", "").strip()):
        tasks.ring_rounds()
        follows = "starts no more jobs" if cordoned else "starts jobs again"
        messages.success(request, f"{place.what[:1].upper()}{place.what[1:]} {follows}.")
    return redirect(place.back)
