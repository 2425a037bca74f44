"""One form for every refusal: `{"error": {"code", "message", "problems": [{"path", "message", "line"?}]}}`."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import structlog
from django.core.exceptions import PermissionDenied
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404
from psycopg.errors import QueryCanceled
from rest_framework import exceptions
from rest_framework.response import Response

from lookout.access import NotSignedIn, TokenUnknown, WrongScope
from lookout.api.bodies import BodyTooLarge, MediaTypeUnknown
from lookout.api.shapes import WhenKnown, encode
from policies.problems import DocumentInvalid, Problem
from scheduler.actors import NotPermitted
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound, TooMuchAsked
from scheduler.filters import FilterInvalid

log = structlog.get_logger(__name__)

_CODES = {
    400: "invalid",
    401: "unauthenticated",
    403: "not_permitted",
    404: "not_found",
    405: "method_not_allowed",
    415: "unsupported_media_type",
    429: "too_many_requests",
    503: "unavailable",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ProblemView:
    """One thing to mend."""

    path: str
    """Where, as in rules[2].onCategory; empty for the whole."""
    message: str
    line: Annotated[int | None, WhenKnown()] = None
    """Of the document as sent, where known."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Error:
    """Why not."""

    code: str
    """For programs: invalid, unauthenticated, not_permitted, not_found, already_exists, conflict and others."""
    message: str
    """For people, with the fix."""
    problems: tuple[ProblemView, ...]
    """Everything wrong with what was sent, at once."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Every answer of 400 and above."""

    error: Error


class NoSuchAddress(Exception):
    """The API has no such address."""

    def __init__(self, path: str) -> None:
        super().__init__(f"There is nothing at {path[:200]}. /api/v1/openapi.json lists what there is.")


class Unavailable(Exception):
    """Not now. Try again after so many seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


_ANSWERS: dict[type[Exception], tuple[int, str]] = {
    NotSignedIn: (401, "unauthenticated"),
    TokenUnknown: (401, "unauthenticated"),
    WrongScope: (403, "wrong_scope"),
    NotPermitted: (403, "not_permitted"),
    NoSuchAddress: (404, "not_found"),
    NotFound: (404, "not_found"),
    AlreadyExists: (409, "already_exists"),
    Conflict: (409, "conflict"),
    Invalid: (400, "invalid"),
    TooMuchAsked: (400, "too_much_asked"),
    BodyTooLarge: (413, "too_large"),
    MediaTypeUnknown: (415, "unsupported_media_type"),
}


def refusal(
    status: int,
    code: str,
    message: str,
    *,
    problems: Iterable[Problem] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    """The answer that says why not."""
    return Response(refusal_body(code, message, problems), status=status, headers=headers)


def refusal_body(code: str, message: str, problems: Iterable[Problem] = ()) -> dict[str, Any]:
    """What every refusal holds."""
    error = Error(code=code, message=message, problems=tuple(problem_view(problem) for problem in problems))
    body: dict[str, Any] = encode(Refusal(error=error))
    return body


def problem_view(problem: Problem) -> ProblemView:
    """A problem as it travels."""
    return ProblemView(path=problem.path, message=problem.message, line=problem.line)


def answer_exception(error: Exception, context: dict[str, Any]) -> Response:
    """REST framework's exception handler: whatever was raised, in the one form."""
    if isinstance(error, DocumentInvalid):
        return refusal(400, "invalid", _summary(error.problems), problems=error.problems)
    if isinstance(error, FilterInvalid):
        found = tuple(
            Problem(path=each.field, message=each.message, code="invalid") for each in error.problems
        )
        # Their messages name the field themselves.
        message = (
            str(error)
            if len(found) == 1
            else _summary([dataclasses.replace(each, path="") for each in found])
        )
        return refusal(400, "invalid", message, problems=found)
    if isinstance(error, Unavailable):
        return refusal(503, "unavailable", str(error), headers={"Retry-After": str(error.retry_after)})
    for kind in type(error).__mro__:
        if kind in _ANSWERS:
            return _refused(error, *_ANSWERS[kind])
    if isinstance(error, Http404 | PermissionDenied):
        error = exceptions.NotFound() if isinstance(error, Http404) else exceptions.PermissionDenied()
    if isinstance(error, exceptions.APIException):
        return _refused_by_framework(error)
    return _failed(error, context)


def _refused(error: Exception, status: int, code: str) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="tack"'} if status == 401 else None
    problems = _problems(error)
    message = _summary(problems) if len(problems) > 1 else str(error)
    return refusal(status, code, message, problems=problems, headers=headers)


def _problems(error: Exception) -> list[Problem]:
    if isinstance(error, Invalid) and error.path:
        return [Problem(path=error.path, message=str(error), code="invalid")]
    return list(error.problems) if isinstance(error, NotFound) else []


def _summary(problems: Sequence[Problem]) -> str:
    if len(problems) == 1:
        return str(problems[0])
    return (
        f"There are {len(problems)} problems. The first: {problems[0]}" if problems else "This is not valid."
    )


def _refused_by_framework(error: exceptions.APIException) -> Response:
    wait = getattr(error, "wait", None)  # of Throttled
    headers = {} if wait is None else {"Retry-After": str(int(wait) + 1)}
    code = _CODES.get(error.status_code, "invalid")
    return refusal(error.status_code, code, str(error.detail), headers=headers)


def _failed(error: Exception, context: dict[str, Any]) -> Response:
    """A mistake of ours, or a database out of reach: logged in full, told without detail."""
    if isinstance(error, OperationalError | InterfaceError):
        log.warning("The database did not answer", error=str(error))
        return refusal(503, "unavailable", _why_not_now(error), headers={"Retry-After": "2"})
    request = context.get("request")
    log.error("An API request failed", exc_info=error, path=getattr(request, "path", ""))
    got_request_exception.send(sender=None, request=getattr(request, "_request", request))
    return refusal(500, "internal", "Tack failed to answer. The log of the web process says why.")


def _why_not_now(error: Exception) -> str:
    if isinstance(error.__cause__, QueryCanceled):
        return "The database took too long and was stopped; nothing was changed. Ask for less, or try again later."
    return "The database did not answer. Try again in a few seconds."
