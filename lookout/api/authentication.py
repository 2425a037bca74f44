"""Who sent a request: the bearer of a token, or a person with a session."""

from django.contrib.auth.models import AnonymousUser, User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from lookout.access import TokenUnknown, actor_of, agents_token_of, executor_of, token_of
from lookout.models import Token


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer TOKEN`. A token that was sent and is not good is refused, whatever else came along.

    What agents may do goes by their token's executor, whoever owns it: for them the owner is not loaded.
    """

    def __init__(self, *, of_agents: bool = False) -> None:
        self._of_agents = of_agents

    def authenticate(self, request: Request) -> tuple[User | AnonymousUser, Token] | None:
        sent = request.META.get("HTTP_AUTHORIZATION", "")
        if not sent:
            return None
        scheme, _, secret = sent.partition(" ")
        if scheme.lower() != "bearer":
            raise TokenUnknown
        if self._of_agents:
            return AnonymousUser(), agents_token_of(secret.strip())
        token = token_of(secret.strip())
        return token.owner, token


class PersonsSession(SessionAuthentication):
    """A signed-in person. What writes needs the CSRF token, in the header X-CSRFToken."""

    def enforce_csrf(self, request: Request) -> None:
        # On Django's own request: the framework's would read the body in search of a form's token.
        super().enforce_csrf(request._request)  # type: ignore[arg-type]  # noqa: SLF001


class SignedIn(BasePermission):
    """Somebody with a role; not the agents, whose tokens are for the executor API."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        actor_of(request)
        return True


class AgentOnly(BasePermission):
    """The agent of an executor, by its token."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        executor_of(request)
        return True


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the description names tokens."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the description names sessions."""

    target_class = PersonsSession
    name = "session"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "tack_session"}
