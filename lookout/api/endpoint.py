"""What every endpoint shares: who may come in, JSON out, refusals in one form."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.http import parse_etags, quote_etag
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lookout.access import actor_of
from lookout.api.authentication import (
    AgentOnly,
    PersonsSession,
    SignedIn,
    TokenAuthentication,
)
from lookout.api.errors import NoSuchAddress, answer_exception
from lookout.api.shapes import encode
from scheduler.actors import Actor, Permission


class AlwaysJson(BaseContentNegotiation):
    """JSON whatever was asked for: a refusal must be readable even to those who asked for something else."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return JSONRenderer(), "application/json"


class Endpoint(APIView):
    """One address of the API: a method of it reads, calls one verb or one read, and answers."""

    authentication_classes = (TokenAuthentication, PersonsSession)
    permission_classes: Any = (SignedIn,)
    renderer_classes = (JSONRenderer,)
    parser_classes = ()  # `bodies` reads what was sent
    content_negotiation_class = AlwaysJson
    http_method_names = ["get", "head", "post", "put", "delete"]  # noqa: RUF012  as the framework has it

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        return answer_exception

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Before the method: who is asking, and whether the address can name anything at all."""
        super().initial(request, *args, **kwargs)
        if "\x00" in request.path:
            raise NoSuchAddress(request.path.replace("\x00", "?"))

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer


class AgentEndpoint(Endpoint):
    """One address of the agents."""

    permission_classes = (AgentOnly,)

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [TokenAuthentication(of_agents=True)]


class NothingHere(Endpoint):
    """Every other address below /api/, whatever the method and whoever asks."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Comes before everything else."""
        raise NoSuchAddress(request.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoQuery:
    """No parameter is read here; a misspelled one is refused, not ignored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """An empty object."""


def permitted(request: Request, permission: Permission) -> Actor:
    """The actor, if it has the permission: asked before anything of the body is read. Raises NotPermitted."""
    actor = actor_of(request)
    actor.require(permission)
    return actor


IF_NONE_MATCH = {
    "If-None-Match": "The ETag of what you have: the answer is 304 and empty while it is the same."
}


def answer_tagged(request: Request, value: object) -> Response:
    """The value as JSON under an ETag; nothing but 304 for those who have just this already."""
    body = encode(value)
    text = json.dumps(body, sort_keys=True, ensure_ascii=False).encode()
    tag = quote_etag(hashlib.blake2b(text, digest_size=16).hexdigest())
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = [each.removeprefix("W/") for each in parse_etags(request.headers.get("If-None-Match", ""))]
    if tag in known or "*" in known:
        return Response(status=304, headers=headers)
    return Response(body, headers=headers)


def answer(value: object = None, *, status: int = 200) -> Response:
    """The value as JSON."""
    return Response({} if value is None else encode(value), status=status)
