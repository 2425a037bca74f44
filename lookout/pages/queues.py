"""Queues: how many jobs each holds, which retry policy decides there, and whose it is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lookout.pages.bar import STATES, jobs_address
from lookout.pages.shell import PageRequest, page, show
from policies.documents import DocumentInvalid
from scheduler import tasks
from scheduler.actors import Permission
from scheduler.administration import (
    attach_policies,
    create_queue,
    delete_queue,
    update_queue,
)
from scheduler.configured import configuration
from scheduler.errors import AlreadyExists, Conflict, Invalid
from scheduler.queries.names import policy_names
from scheduler.queries.queues import QueueRow, queue_detail, queue_rows
from scheduler.queries.waiting import waiting_in
from scheduler.queuefile import QueueSpec, parse_queue
from scheduler.states import JobState

READ = ["GET", "HEAD", "POST"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StateCount:
    """How many jobs of a queue are in a state, and where they are listed."""

    state: JobState
    count: int
    address: str


@require_safe
@page
def queues(request: PageRequest) -> HttpResponse:
    """All queues."""
    rows = queue_rows()
    retries = configuration().retry_policy
    context = {
        "rows": [{"row": row, "counts": {entry.state: entry for entry in _counts(row)}} for row in rows],
        "waiting": sum(row.waiting for row in rows),
        "active": sum(row.active for row in rows),
        "retries": retries,
        "may_write": Permission.CREATE_QUEUE in request.actor.permissions,
    }
    return show(request, "queues/queues.html", context, place="queues", part="live")


@require_safe
@page
def queue(request: PageRequest, name: str) -> HttpResponse:
    """One queue."""
    return _queue_page(request, queue_detail(name))


@require_http_methods(READ)
@page
def new_queue(request: PageRequest) -> HttpResponse:
    """The form of a new queue; sent, it makes it."""
    request.actor.require(Permission.CREATE_QUEUE)
    if request.method != "POST":
        return _form(request, QueueSpec(name="", owners=(request.actor.name,)), is_new=True)
    return _write(request, typed=_typed(request), base=None)


@require_http_methods(READ)
@page
def edit_queue(request: PageRequest, name: str) -> HttpResponse:
    """The form of a queue; sent, it replaces what the form shows and leaves the rest."""
    request.actor.require(Permission.CREATE_QUEUE)
    spec = queue_detail(name).spec
    if request.method != "POST":
        return _form(request, spec, is_new=False)
    return _write(request, typed={**_typed(request), "name": name}, base=spec)


@require_POST
@page
def attach(request: PageRequest, name: str) -> HttpResponse:
    """Replace the queue's list of policies; from a policy's page, add that policy or take it away."""
    return _attach(request, name)


@require_POST
@page
def attach_to_chosen(request: PageRequest) -> HttpResponse:
    """As `attach`, for the queue the form of a policy's page names."""
    return _attach(request, request.POST.get("queue", ""))


@require_http_methods(READ)
@page
def remove_queue(request: PageRequest, name: str) -> HttpResponse:
    """The question before a queue is deleted; sent, it is."""
    request.actor.require(Permission.DELETE_QUEUE)
    row = queue_detail(name)
    if request.method != "POST":
        return show(
            request, "queues/delete.html", {"row": row, "problem": ""}, place="queues", part="question"
        )
    try:
        delete_queue(name=name, actor=request.actor)
    except Conflict as error:
        context = {"row": row, "problem": str(error)}
        return show(request, "queues/delete.html", context, place="queues", status=409)
    messages.success(request, f"Queue {name} was deleted.")
    return redirect("queues")


def _attach(request: PageRequest, name: str) -> HttpResponse:
    row = queue_detail(name)
    wanted = _wanted_policies(request, row.retry_policies)
    if _chosen_twice(wanted):
        return _queue_page(request, row, wanted=wanted, status=400)
    try:
        changed = attach_policies(queue=name, policies=wanted, actor=request.actor)
    except (Invalid, DocumentInvalid) as error:
        return _queue_page(request, row, problem=str(error), status=400)
    if changed:
        decides = f"{wanted[0]} decides" if wanted else "no policy is attached"
        messages.success(request, f"In queue {name} {decides} from now on.")
    return redirect(_back(request, name))


def _queue_page(
    request: PageRequest,
    row: QueueRow,
    *,
    wanted: Sequence[str] | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """`wanted` is a list of policies that was sent and not taken."""
    spec = row.spec
    policies = spec.retry_policies if wanted is None else wanted
    context = {
        "row": row,
        "spec": spec,
        "counts": _counts(row),
        "waiting": waiting_in(row.name) if row.waiting else None,
        "jobs_address": jobs_address([("queue", row.name)]),
        "places": _places(policies),
        "chosen_twice": _chosen_twice(policies),
        "all_policies": policy_names(),
        "retries": configuration().retry_policy,
        "problem": problem,
        "attach_open": "attach" in request.GET.getlist("open"),
        "may_write": Permission.CREATE_QUEUE in request.actor.permissions,
        "may_delete": Permission.DELETE_QUEUE in request.actor.permissions,
    }
    return show(request, "queues/queue.html", context, place="queues", status=status)


def _places(policies: Sequence[str]) -> list[tuple[int, str]]:
    return [*enumerate(policies, start=1), (len(policies) + 1, "")]


def _counts(row: QueueRow) -> list[StateCount]:
    return [
        StateCount(
            state=state, count=row.jobs[state], address=jobs_address([("queue", row.name), ("state", state)])
        )
        for state in STATES
    ]


def _wanted_policies(request: PageRequest, current: Sequence[str]) -> list[str]:
    if added := request.POST.get("add"):
        return [*current, *([] if added in current else [added])]
    if taken := request.POST.get("detach"):
        return [name for name in current if name != taken]
    return [name for name in request.POST.getlist("policy") if name]


def _chosen_twice(policies: Sequence[str]) -> list[str]:
    """Names in more than one place: the second would be dropped, and whatever it was chosen over with it."""
    return [name for name, times in Counter(policies).items() if times > 1]


def _back(request: PageRequest, name: str) -> str:
    """A policy's page sent this when it names itself, and is returned to."""
    policy = request.POST.get("from", "")
    is_name = policy and "/" not in policy
    return reverse("policy", args=[policy]) if is_name else reverse("queue", args=[name])


def _typed(request: PageRequest) -> dict[str, Any]:
    """What the form holds, as a queue document. A number that is none is left for the reader to refuse."""
    factor = request.POST.get("priorityFactor", "").strip()
    return {
        "name": request.POST.get("name", "").strip(),
        "priorityFactor": _number(factor) if factor else 1.0,
        "userOwners": _words(request.POST.get("userOwners", "")),
        "groupOwners": _words(request.POST.get("groupOwners", "")),
        "retryPolicies": [name for name in request.POST.getlist("policy") if name],
    }


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _write(request: PageRequest, *, typed: Mapping[str, Any], base: QueueSpec | None) -> HttpResponse:
    is_new = base is None
    if _chosen_twice(typed["retryPolicies"]):
        return _form(request, typed, is_new=is_new, status=400)
    try:
        spec = parse_queue(dict(typed))
        if base is None:
            create_queue(spec=spec, actor=request.actor)
        else:
            kept = replace(spec, permissions=base.permissions, labels=base.labels, cordoned=base.cordoned)
            if update_queue(spec=kept, actor=request.actor):
                tasks.ring_rounds()
    except DocumentInvalid as error:
        problems = {problem.path.split("[")[0]: problem.message for problem in error.problems}
    except AlreadyExists as error:
        problems = {"name": str(error)}
    except Invalid as error:
        problems = {error.path: str(error)}
    else:
        messages.success(request, f"Queue {spec.name} {'is there' if is_new else 'was changed'}.")
        return redirect("queue", spec.name)
    return _form(request, typed, is_new=is_new, problems=problems, status=400)


def _form(
    request: PageRequest,
    shown: QueueSpec | Mapping[str, Any],
    *,
    is_new: bool,
    problems: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    typed = shown if isinstance(shown, Mapping) else _as_typed(shown)
    policies = typed["retryPolicies"]
    context = {
        "typed": typed,
        "is_new": is_new,
        "problems": problems or {},
        "places": _places(policies),
        "chosen_twice": _chosen_twice(policies),
        "all_policies": policy_names(),
    }
    return show(request, "queues/form.html", context, place="queues", status=status)


def _as_typed(spec: QueueSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "priorityFactor": spec.priority_factor,
        "userOwners": spec.owners,
        "groupOwners": spec.group_owners,
        "retryPolicies": spec.retry_policies,
    }
