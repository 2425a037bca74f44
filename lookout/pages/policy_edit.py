"""Write a policy as text: checked while typing, published as a new version, never over somebody else's."""

from dataclasses import dataclass
from itertools import chain, count

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from lookout.pages.difference import DiffLine, difference
from lookout.pages.policies import document_text
from lookout.pages.reading import Reading, read_document
from lookout.pages.shell import PageRequest, page, show
from policies.documents import DocumentInvalid
from policies.policy import Policy
from scheduler.actors import Permission
from scheduler.configured import configuration
from scheduler.errors import AlreadyExists, Invalid, NotFound
from scheduler.publishing import EditConflict, Published, create_policy, update_policy
from scheduler.queries.names import policy_names
from scheduler.queries.policies import PolicyDetail, policy_detail, policy_version

BLANK = """\
apiVersion: armadaproject.io/v1beta1
kind: RetryPolicy
name: {name}
retryLimit: 2
defaultAction: Fail
rules:
  - action: Retry
    onCategory: oom
    mutate:
      resources:
        memory: {{factor: 2}}
"""
NOT_BY_FORCE = (
    "Not published: tick “Publish it all the same” below what executors object to, or change the document."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Typed:
    """What the form of the editor holds."""

    text: str
    note: str = ""
    based_on: int | None = None
    force: bool = False

    @classmethod
    def of(cls, request: PageRequest) -> "Typed":
        """Line ends are those of the document, not those of the form."""
        based_on = request.POST.get("based_on", "")
        return cls(
            text=request.POST.get("text", "").replace("\r\n", "\n"),
            note=request.POST.get("note", "").strip(),
            based_on=int(based_on)
            if based_on.isascii() and based_on.isdigit() and len(based_on) < 10
            else None,
            force="force" in request.POST,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Overtaken:
    """Somebody published while this was being written."""

    version: int
    author: str
    note: str
    lines: list[DiffLine]
    """From theirs to the text in the editor."""


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_policy(request: PageRequest) -> HttpResponse:
    """The editor with an example; sent, it publishes version 1."""
    request.actor.require(Permission.CREATE_RETRY_POLICY)
    if request.method != "POST":
        return _editor(request, Typed(text=BLANK.format(name=_free_name())), None)
    return _publish(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def edit_policy(request: PageRequest, name: str) -> HttpResponse:
    """The editor of a policy; sent, it publishes the next version. `from` begins with an older version's text."""
    request.actor.require(Permission.UPDATE_RETRY_POLICY)
    detail = policy_detail(name)
    if request.method == "POST":
        return _publish(request, detail)
    older = request.GET.get("from", "")
    begin = (
        policy_version(name, int(older))
        if older.isascii() and older.isdigit() and len(older) < 10
        else detail.shown
    )
    note = f"Back to version {begin.version}" if begin.version != detail.shown.version else ""
    return _editor(
        request, Typed(text=document_text(begin), note=note, based_on=detail.shown.version), detail
    )


@require_POST
@page
def check_policy(request: PageRequest) -> HttpResponse:
    """What the document says so far, for the editor's right-hand side. Writes nothing."""
    name = request.POST.get("name") or None
    reading = read_document(Typed.of(request).text, name=name, config=configuration())
    context = {"reading": reading, "force": "force" in request.POST}
    return show(request, "policies/edit.html", context, place="policies", part="reading")


def _publish(request: PageRequest, detail: PolicyDetail | None) -> HttpResponse:
    typed = Typed.of(request)
    reading = read_document(typed.text, name=detail.name if detail else None, config=configuration())
    if reading.policy is None or "check" in request.POST:
        status = 200 if "check" in request.POST else 409 if reading.name_is_taken else 400
        return _editor(request, typed, detail, reading=reading, status=status)
    try:
        published = _write(request, typed, reading.policy, is_new=detail is None)
    except EditConflict as error:
        return _overtaken(request, typed, reading, error)
    except DocumentInvalid:  # what executors say; `reading` tells it with the way to publish all the same
        return _editor(request, typed, detail, reading=reading, problem=NOT_BY_FORCE, status=409)
    except (AlreadyExists, Invalid, NotFound) as error:
        return _editor(request, typed, detail, reading=reading, problem=str(error), status=409)
    if published.changed:
        messages.success(request, f"Version {published.version} of {published.name} is in force.")
    else:
        messages.info(request, f"Nothing changed: this is version {published.version} of {published.name}.")
    return redirect("policy", published.name)


def _free_name() -> str:
    """What a new policy is called until its author calls it something: a name that is not in use."""
    used = set(policy_names())
    numbered = (f"oom-grow-{number}" for number in count(2))
    return next(name for name in chain(["oom-grow"], numbered) if name not in used)


def _write(request: PageRequest, typed: Typed, policy: Policy, *, is_new: bool) -> Published:
    if is_new:
        return create_policy(
            policy=policy, text=typed.text, note=typed.note, actor=request.actor, force=typed.force
        )
    return update_policy(
        policy=policy,
        text=typed.text,
        note=typed.note,
        based_on=typed.based_on,
        actor=request.actor,
        force=typed.force,
    )


def _overtaken(request: PageRequest, typed: Typed, reading: Reading, error: EditConflict) -> HttpResponse:
    detail = policy_detail(reading.policy.name if reading.policy else "")
    theirs = detail.shown
    overtaken = Overtaken(
        version=error.current_version,
        author=theirs.row.author,
        note=theirs.row.note,
        lines=difference(document_text(theirs), typed.text),
    )
    on_top = Typed(text=typed.text, note=typed.note, based_on=error.current_version, force=typed.force)
    return _editor(request, on_top, detail, reading=reading, overtaken=overtaken, status=409)


def _editor(
    request: PageRequest,
    typed: Typed,
    detail: PolicyDetail | None,
    *,
    reading: Reading | None = None,
    overtaken: Overtaken | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    name = detail.name if detail else None
    context = {
        "typed": typed,
        "typed_before": request.method == "POST",
        "force": typed.force,
        "detail": detail,
        "row": detail.row if detail else None,
        "next_version": (typed.based_on or 0) + 1 if detail else 1,
        "reading": reading or read_document(typed.text, name=name, config=configuration()),
        "overtaken": overtaken,
        "problem": problem,
        "retries": configuration().retry_policy,
    }
    return show(request, "policies/edit.html", context, place="policies", status=status)
