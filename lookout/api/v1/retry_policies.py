"""Retry policies: write, read, check, delete. The body is the document, JSON or YAML."""

import dataclasses
import re
from typing import Annotated, Any

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import Body, document_of, query_of
from lookout.api.endpoint import Endpoint, NoQuery, Nothing, answer, permitted
from lookout.api.errors import problem_view
from lookout.api.schema import described
from lookout.api.shapes import AtMost
from lookout.api.v1.policy_views import (
    PolicyCheck,
    PolicyList,
    PolicyView,
    RetryPolicyDocument,
    VersionList,
    detail_view,
    row_views,
    version_view,
)
from policies.documents import read_policy
from policies.lines import with_lines
from policies.policy import Policy
from policies.problems import DocumentInvalid, Problem
from policies.tree import tree_of_json, tree_of_text
from policies.wording import rule_sentence
from scheduler.actors import Actor, Permission
from scheduler.configured import configuration
from scheduler.publishing import apply_policy, create_policy, delete_policy, update_policy
from scheduler.queries.policies import (
    deployment_check,
    deployment_check_of_draft,
    policy_detail,
    policy_rows,
    policy_versions,
)

_ENTITY_TAG = re.compile(r'(?:W/)?"?([0-9]{1,9})"?')


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WriteQuery:
    """How to write a policy."""

    note: Annotated[str, AtMost(2_000)] = ""
    """Why, for the history."""
    force: bool = False
    """Write it though the executors heard of cannot do what it asks."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CreateQuery:
    """How to write a policy that may exist."""

    note: Annotated[str, AtMost(2_000)] = ""
    """Why, for the history."""
    force: bool = False
    """Write it though the executors heard of cannot do what it asks."""
    apply: bool = False
    """Make a new version when there is a policy of that name, instead of refusing."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DeleteQuery:
    """How to delete a policy."""

    detach: bool = False
    """Detach it from the queues that have it; otherwise it is refused, naming them."""


class RetryPolicies(Endpoint):
    """All of them."""

    @described("listRetryPolicies", tag="Retry policies", answer=PolicyList)
    def get(self, request: Request) -> Response:
        """The current version of every policy, by name."""
        query_of(request, NoQuery)
        return answer(PolicyList(retry_policies=row_views(policy_rows(), config=configuration())))

    @described(
        "createRetryPolicy",
        tag="Retry policies",
        query=CreateQuery,
        body=RetryPolicyDocument,
        yaml=True,
        answer=PolicyView,
        status=201,
        others={200: PolicyView},
        refusals=(400, 409),
    )
    def post(self, request: Request) -> Response:
        """Publish a policy. A name in use is refused, unless `apply` is set: then it is a new version.

        Applying the document that is current changes nothing.
        """
        actor = _writer(request)
        query = query_of(request, CreateQuery)
        if not query.apply:
            actor.require(Permission.CREATE_RETRY_POLICY)
        body = document_of(request)
        written: dict[str, Any] = {
            "policy": _policy(body, force=query.force),
            "text": _typed(body),
            "actor": actor,
        }
        write = apply_policy if query.apply else create_policy
        done = write(**written, note=query.note, force=query.force)
        return _shown(done.name, status=201 if done.created else 200)


class RetryPolicyEndpoint(Endpoint):
    """One policy."""

    @described("getRetryPolicy", tag="Retry policies", answer=PolicyView, refusals=(404,))
    def get(self, request: Request, name: str) -> Response:
        """The current version of a policy. Its number is the entity tag."""
        query_of(request, NoQuery)
        return _shown(name)

    @described(
        "updateRetryPolicy",
        tag="Retry policies",
        query=WriteQuery,
        body=RetryPolicyDocument,
        yaml=True,
        answer=PolicyView,
        refusals=(400, 404, 409),
        headers={
            "If-Match": 'The version the edit is based on, such as "3": refused (409) if another is current, unless its document is the one that is sent.'
        },
    )
    def put(self, request: Request, name: str) -> Response:
        """Publish the next version of a policy. The document that is current makes none."""
        actor = permitted(request, Permission.UPDATE_RETRY_POLICY)
        query = query_of(request, WriteQuery)
        based_on = _based_on(request)
        body = document_of(request)
        policy = _policy(body, name=name, force=query.force)
        done = update_policy(
            policy=policy,
            text=_typed(body),
            note=query.note,
            based_on=based_on,
            actor=actor,
            force=query.force,
        )
        return _shown(done.name)

    @described(
        "deleteRetryPolicy", tag="Retry policies", query=DeleteQuery, answer=Nothing, refusals=(400, 409)
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a policy. One that does not exist is no error; its versions are kept."""
        actor = permitted(request, Permission.DELETE_RETRY_POLICY)
        delete_policy(name=name, detach=query_of(request, DeleteQuery).detach, actor=actor)
        return answer()


class RetryPolicyCheck(Endpoint):
    """A document, checked and not written."""

    http_method_names = ["post"]  # noqa: RUF012  as the framework has it

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Other methods mean a policy whose name is "check"."""
        if request.method == "POST":
            return super().dispatch(request, *args, **kwargs)
        return RetryPolicyEndpoint.as_view()(request, name="check")

    @described(
        "checkRetryPolicy",
        tag="Retry policies",
        body=RetryPolicyDocument,
        yaml=True,
        answer=PolicyCheck,
        refusals=(413, 415),
    )
    def post(self, request: Request) -> Response:
        """Say what is wrong with a document and what its rules do. Nothing is written."""
        try:
            policy = _policy(document_of(request))
        except DocumentInvalid as error:
            problems = tuple(problem_view(problem) for problem in error.problems)
            return answer(PolicyCheck(problems=problems, warnings=(), rules=()))
        found = deployment_check(policy, config=configuration())
        return answer(
            PolicyCheck(
                problems=tuple(problem_view(problem) for problem in found.problems),
                warnings=tuple(problem_view(problem) for problem in found.warnings),
                rules=tuple(rule_sentence(rule) for rule in policy.rules),
            )
        )


class Versions(Endpoint):
    """The history of a policy."""

    @described("listRetryPolicyVersions", tag="Retry policies", answer=VersionList, refusals=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Every version of a policy, newest first; those of a deleted one are kept."""
        query_of(request, NoQuery)
        versions = policy_versions(name)
        row = policy_detail(name, versions[0].version).row
        queues = row.queues if row else ()
        return answer(VersionList(versions=tuple(version_view(version, queues) for version in versions)))


class VersionEndpoint(Endpoint):
    """One version of a policy."""

    @described("getRetryPolicyVersion", tag="Retry policies", answer=PolicyView, refusals=(404,))
    def get(self, request: Request, name: str, version: int) -> Response:
        """One version of a policy."""
        query_of(request, NoQuery)
        return answer(detail_view(policy_detail(name, version), config=configuration()))


def _writer(request: Request) -> Actor:
    """Whoever may make policies or change them; which of the two it takes, the name decides."""
    actor = actor_of(request)
    if Permission.UPDATE_RETRY_POLICY not in actor.permissions:
        actor.require(Permission.CREATE_RETRY_POLICY)
    return actor


def _policy(body: Body, *, name: str = "", force: bool = False) -> Policy:
    """The policy in a body. Raises DocumentInvalid with all its problems and, but for `force`, those with the fleet."""
    read = tree_of_text if body.is_yaml else tree_of_json  # what is sent as JSON must be JSON
    tree = read(body.text)
    draft = read_policy(tree, envelope_required=False)
    if draft.problems:
        fleet = () if force else deployment_check_of_draft(draft, config=configuration()).problems
        found = [*draft.problems, *fleet]
        raise DocumentInvalid(with_lines(found, tree) if body.is_yaml else found)
    policy = draft.policy()
    if name and policy.name != name:
        message = f"The document names '{policy.name}', the address '{name}'. A policy keeps its name."
        raise DocumentInvalid([Problem(path="name", message=message, code="other_name")])
    return policy


def _typed(body: Body) -> str:
    """What an author typed; JSON is what a program sent."""
    return body.text if body.is_yaml else ""


def _based_on(request: Request) -> int | None:
    tag = request.META.get("HTTP_IF_MATCH", "").strip()
    if tag in ("", "*"):
        return None
    found = _ENTITY_TAG.fullmatch(tag)
    if found is None:
        message = 'Takes the number of one version, such as "3".'
        raise DocumentInvalid([Problem(path="If-Match", message=message, code="invalid")])
    return int(found[1])


def _shown(name: str, *, status: int = 200) -> Response:
    detail = policy_detail(name)
    response = answer(detail_view(detail, config=configuration()), status=status)
    response.headers["ETag"] = f'"{detail.shown.version}"'
    return response
