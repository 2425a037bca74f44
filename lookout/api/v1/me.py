"""Who is asking, and links to sign in with."""

import dataclasses
from datetime import datetime

from django.contrib.auth.models import User
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView

from lookout.access import SIGN_IN_LINK_LIFETIME, WrongScope, actor_of, issue_sign_in_link, role_of
from lookout.api.authentication import SignedIn
from lookout.api.endpoint import Endpoint, answer
from lookout.api.schema import described
from lookout.models import Token
from scheduler.actors import Role
from scheduler.models.clock import database_now


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """The person or program behind a request."""

    name: str
    role: Role
    permissions: tuple[str, ...]
    """Sorted. Queues may allow more."""
    groups: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NewSignInLink:
    """A link that signs its owner in once. Opening it only shows a form; the form spends it."""

    path: str
    url: str
    """With the address this request came to."""
    expires_at: datetime


class MeEndpoint(Endpoint):
    """Who is asking."""

    @described("getMe", tag="People", answer=Me)
    def get(self, request: Request) -> Response:
        """On whose behalf the request was made, and what they may do."""
        actor = actor_of(request)
        assert isinstance(request.user, User)
        return answer(
            Me(
                name=actor.name,
                role=role_of(request.user),
                permissions=tuple(sorted(actor.permissions)),
                groups=tuple(sorted(actor.groups)),
            )
        )


class WithToken(BasePermission):
    """A token was sent: a session must not make itself last for ever."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, Token):
            raise WrongScope("Sign-in links are made with a token: 'tack login'.")
        return True


class SignInLinkRate(UserRateThrottle):
    """Far more than a person needs, and too few to fill a table."""

    scope = "sign_in_links"
    rate = "60/min"


class SignInLinks(Endpoint):
    """Links to sign in with."""

    permission_classes = (SignedIn, WithToken)
    throttle_classes = (SignInLinkRate,)

    @described("createSignInLink", tag="People", answer=NewSignInLink, status=201, refusals=(429,))
    def post(self, request: Request) -> Response:
        """Make a link that signs the owner of the token in, once, within ten minutes."""
        assert isinstance(request.user, User)
        path = issue_sign_in_link(request.user)
        link = NewSignInLink(
            path=path,
            url=request.build_absolute_uri(path),
            expires_at=database_now() + SIGN_IN_LINK_LIFETIME,
        )
        return answer(link, status=201)
