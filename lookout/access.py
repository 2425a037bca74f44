"""Who may come in, and as whom: tokens, sign-in links, and the actor behind a request.

Secrets are 256 random bits. They are shown once, when they are made; the database keeps their SHA-256.
"""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpRequest

from lookout.models import Profile, Scope, SignInLink, Token
from scheduler.actors import Actor, Role
from scheduler.fields import problem_of_line, written_out
from scheduler.models.clock import database_now

ADMIN = "admin"
"""The name of the admin that the first start makes."""
SIGN_IN_LINK_LIFETIME = timedelta(minutes=10)


class NotSignedIn(Exception):
    """Nobody is behind this request."""

    def __init__(self) -> None:
        super().__init__("Sign in first, or send a token: 'Authorization: Bearer TOKEN'.")


class TokenUnknown(Exception):
    """The token is not good here."""

    def __init__(self) -> None:
        super().__init__(
            "The token is unknown or has expired. Use the one 'tack up' wrote, or ask for another."
        )


class WrongScope(Exception):
    """The token is good, but for another API."""


class SignInLinkSpent(Exception):
    """The link signs nobody in."""

    def __init__(self) -> None:
        super().__init__(
            "This sign-in link was used, has expired or was never made. 'tack login' prints another."
        )


class NameInvalid(ValueError):
    """Nobody and nothing can have this name."""

    def __init__(self, what: str, name: str, most: int) -> None:
        super().__init__(
            f"{what} is one line of 1 to {most} characters that can be seen, not '{written_out(name[:60])}'."
        )


@transaction.atomic
def ensure_person(name: str, *, role: Role | None = None, groups: list[str] | None = None) -> User:
    """The person of that name, made when there is none. A role or groups given replace what was there.

    Raises NameInvalid for a name nobody can have.
    """
    _check("The name of a person", name, most=150)
    for group in groups or ():
        _check("The name of a group", group, most=253)
    user, made = User.objects.get_or_create(username=name)
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    given = {"role": role, "groups": groups}
    Profile.objects.update_or_create(user=user, defaults={k: v for k, v in given.items() if v is not None})
    return user


def ensure_admin() -> User:
    """The admin of the first start. Called again, it finds the same one; a role changed since stays changed."""
    found = User.objects.filter(username=ADMIN).first()
    return found or ensure_person(ADMIN, role=Role.ADMIN)


def issue_token(
    owner: User,
    scope: Scope = Scope.API,
    *,
    executor: str = "",
    expires: timedelta | None = None,
    note: str = "",
) -> str:
    """A new token of that owner; its secret, which nobody can read again. Without `expires` it stays good.

    An executor's name is needed for the executor scope and refused (IntegrityError) for every other. Raises
    NameInvalid for one that no executor can have.
    """
    if executor:
        _check("The name of an executor", executor, most=63)
    if note:
        _check("A note", note, most=500)
    secret = _new_secret()
    Token.objects.create(
        hash=_hash(secret),
        owner=owner,
        scope=scope,
        executor=executor,
        note=note,
        expires_at=None if expires is None else database_now() + expires,
    )
    return secret


def issue_sign_in_link(user: User, *, lifetime: timedelta = SIGN_IN_LINK_LIFETIME) -> str:
    """The path of a new link that signs that person in once, within ten minutes.

    Opening it only shows a form; the form's POST spends it, so that programs that follow links do no harm.
    """
    secret = _new_secret()
    now = database_now()
    SignInLink.objects.filter(expires_at__lt=now).delete()
    SignInLink.objects.create(hash=_hash(secret), user=user, created_at=now, expires_at=now + lifetime)
    return f"/sign-in/{secret}"


def spend_sign_in_link(secret: str) -> User:
    """The person the link signs in. A second call, or a late one, raises SignInLinkSpent."""
    link = SignInLink.objects.filter(hash=_hash(secret), spent_at=None, expires_at__gt=Now())
    # One statement on one table: of two who spend a link at the same moment, the database lets one through.
    if not link.update(spent_at=Now()):
        raise SignInLinkSpent
    user = User.objects.get(sign_in_links__hash=_hash(secret))
    if not user.is_active:
        raise SignInLinkSpent
    return user


def check_sign_in_link(secret: str) -> None:
    """Raises SignInLinkSpent where spending the link would now. Spends nothing."""
    good = SignInLink.objects.filter(hash=_hash(secret), spent_at=None, expires_at__gt=Now())
    if not good.filter(user__is_active=True).exists():
        raise SignInLinkSpent


def token_of(secret: str) -> Token:
    """The token with that secret, its owner and profile loaded. Raises TokenUnknown, also when it has expired."""
    good = Q(expires_at=None) | Q(expires_at__gt=Now())
    found = Token.objects.filter(good, hash=_hash(secret), owner__is_active=True)
    token = found.select_related("owner__profile").first()
    if token is None:
        raise TokenUnknown
    return token


# As text: agents ask several times a second, and putting such a query together takes longer than answering it.
_BY_HASH = """
    SELECT t.* FROM lookout_token t JOIN auth_user o ON o.id = t.owner_id
     WHERE t.hash = %s AND (t.expires_at IS NULL OR t.expires_at > statement_timestamp()) AND o.is_active
"""


def agents_token_of(secret: str) -> Token:
    """As `token_of`, for those who need to know the executor only: the owner is not loaded."""
    token = next(iter(Token.objects.raw(_BY_HASH, [_hash(secret)])), None)
    if token is None:
        raise TokenUnknown
    return token


def actor_of(request: HttpRequest) -> Actor:
    """The person or program behind a request, with what it may do.

    Raises NotSignedIn without one, and WrongScope for the token of an agent.
    """
    auth = getattr(request, "auth", None)
    if isinstance(auth, Token) and auth.scope != Scope.API:
        raise WrongScope("This is an agent's token: it is good for the executor API only.")
    if not isinstance(request.user, User):
        raise NotSignedIn
    return actor(request.user)


def executor_of(request: HttpRequest) -> str:
    """The executor whose agent sends this request.

    Raises NotSignedIn without a token, and WrongScope for a token that is no agent's.
    """
    auth = getattr(request, "auth", None)
    if not isinstance(auth, Token):
        raise NotSignedIn
    if auth.scope != Scope.EXECUTOR:
        raise WrongScope("This token is a person's: the executor API wants the token of an agent.")
    return auth.executor


def actor(user: User) -> Actor:
    """A person as an actor: the permissions of the role, and the groups."""
    return Actor(
        name=user.get_username(),
        permissions=role_of(user).permissions,
        groups=frozenset(_profile(user).groups),
    )


def role_of(user: User) -> Role:
    """The role of a person."""
    return Role(_profile(user).role)


def _profile(user: User) -> Profile:
    """The profile, read once per request; a person without one reads."""
    try:
        return user.profile
    except Profile.DoesNotExist:
        return Profile(user=user)


def _check(what: str, name: str, *, most: int) -> None:
    if not name.strip() or problem_of_line(name, most=most):
        raise NameInvalid(what, name, most)


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
