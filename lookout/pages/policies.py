"""Retry policies: what each says in sentences, where it decides, its versions, and what it decided lately."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from lookout.pages.difference import difference
from lookout.pages.reading import sentences_of
from lookout.pages.shell import PageRequest, page, show
from policies.documents import policy_yaml
from policies.wording import capped_sentence, default_sentence, limit_sentence
from scheduler.actors import Permission
from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.deployment import DeploymentCheck
from scheduler.errors import Conflict, Invalid
from scheduler.publishing import delete_policy
from scheduler.queries.names import queue_names
from scheduler.queries.policies import (
    PolicyDetail,
    PolicyVersion,
    deployment_check,
    deployment_checks,
    policy_detail,
    policy_rows,
    policy_version,
)
from scheduler.queries.runs import recent_decisions

DECISIONS_SHOWN = 20


@require_safe
@page
def policies(request: PageRequest) -> HttpResponse:
    """All policies."""
    config, rows = configuration(), policy_rows()
    fleet = deployment_checks((row.current for row in rows), config=config)
    context = {
        "rows": [{"row": row, "limit": _limit(row.current), "fleet": fleet.get(row.name)} for row in rows],
        "retries": config.retry_policy,
        "may_create": Permission.CREATE_RETRY_POLICY in request.actor.permissions,
    }
    return show(request, "policies/policies.html", context, place="policies")


@require_safe
@page
def policy(request: PageRequest, name: str) -> HttpResponse:
    """One policy, at the version the address names, or else the one that decides."""
    detail = policy_detail(name, _version(request))
    may = request.actor.permissions
    shown, config = detail.shown, configuration()
    text = document_text(shown)
    context = {
        "detail": detail,
        "row": detail.row,
        "shown": shown,
        "rules": sentences_of(shown.policy) if shown.policy else [],
        "limit": _limit(shown),
        "capped": _capped(shown, config),
        "fleet": _fleet(detail, config),
        "default": default_sentence(shown.policy.default_action) if shown.policy else "",
        "lines": text.splitlines(),
        "diff": _difference_to_the_one_before(detail, text),
        "decisions": recent_decisions(policy=name, limit=DECISIONS_SHOWN),
        "other_queues": _other_queues(detail),
        "retries": config.retry_policy,
        "may_update": Permission.UPDATE_RETRY_POLICY in may,
        "may_delete": Permission.DELETE_RETRY_POLICY in may,
        "may_attach": Permission.CREATE_QUEUE in may,
    }
    return show(request, "policies/policy.html", context, place="policies")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove_policy(request: PageRequest, name: str) -> HttpResponse:
    """The question before a policy is deleted; sent, it is, and with `detach` it is taken off its queues."""
    request.actor.require(Permission.DELETE_RETRY_POLICY)
    detail = policy_detail(name)
    if request.method != "POST":
        return _question(request, detail)
    try:
        deleted = delete_policy(name=name, detach="detach" in request.POST, actor=request.actor)
    except Conflict as error:
        return _question(request, detail, problem=str(error), status=409)
    off = f" and detached from {', '.join(deleted.detached)}" if deleted.detached else ""
    messages.success(request, f"Policy {name} was deleted{off}. Its versions are kept.")
    return redirect("policies")


def document_text(version: PolicyVersion) -> str:
    """The document as its author typed it, or else as Tack writes it."""
    if version.row.text:
        return version.row.text
    if version.policy:
        return policy_yaml(version.policy)
    return "\n".join(f"{key}: {value}" for key, value in version.document.items())


def _question(
    request: PageRequest, detail: PolicyDetail, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {"detail": detail, "row": detail.row, "problem": problem}
    part = "" if request.method == "POST" else "question"
    return show(request, "policies/delete.html", context, place="policies", part=part, status=status)


def _version(request: PageRequest) -> int | None:
    asked = request.GET.get("version")
    if asked is None:
        return None
    if not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        raise Invalid("version takes the number of a version.", path="version")
    return int(asked)


def _limit(version: PolicyVersion) -> str:
    return limit_sentence(version.policy.retry_limit) if version.policy else ""


def _capped(version: PolicyVersion, config: Configuration) -> str:
    retries = config.retry_policy
    if version.policy is None or not retries.enabled:
        return ""
    return capped_sentence(version.policy.retry_limit, retries.global_max_retries)


def _fleet(detail: PolicyDetail, config: Configuration) -> DeploymentCheck:
    """What the executors say to the version in force: they may have changed since it was written."""
    if not detail.is_current or detail.shown.policy is None:
        return DeploymentCheck()
    return deployment_check(detail.shown.policy, config=config)


def _difference_to_the_one_before(detail: PolicyDetail, text: str) -> dict[str, object] | None:
    numbers = [row.version for row in detail.versions if row.version < detail.shown.version]
    if not numbers:
        return None
    before = policy_version(detail.name, numbers[0])
    lines = difference(document_text(before), text)
    return {
        "before": before.version,
        "lines": lines,
        "out": sum(line.sign == "−" for line in lines),
        "in": sum(line.sign == "+" for line in lines),
    }


def _other_queues(detail: PolicyDetail) -> list[str]:
    attached = detail.row.queues if detail.row else ()
    return [queue for queue in queue_names() if queue not in attached]
