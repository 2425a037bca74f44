"""Tokens that were handed out: which there are, and taking them back. No secret is shown: nobody knows it any more."""

from collections.abc import Iterable, Sequence

from django.db import transaction

from lookout.models import Token

SHORTEST_ID = 6


class NoSuchToken(Exception):
    """No token has the id, or several begin with it."""

    def __init__(self, token_id: str, *, several: bool) -> None:
        told = "Several tokens' ids begin with" if several else "There is no token"
        super().__init__(f"{told} '{token_id[:64]}'. './tack token list' shows the ids.")


def tokens(*, owner: str = "") -> Sequence[Token]:
    """Every token, or those of one owner, the oldest first, each with its owner."""
    found = Token.objects.select_related("owner").order_by("created_at", "hash")
    return list(found.filter(owner__username=owner) if owner else found)


@transaction.atomic
def revoke_tokens(ids: Iterable[str]) -> Sequence[Token]:
    """Delete tokens by their ids, all or none: whoever carries one is refused from now on. Raises NoSuchToken."""
    found = [_token(token_id) for token_id in ids]
    Token.objects.filter(hash__in=[token.hash for token in found]).delete()
    return found


def _token(token_id: str) -> Token:
    if len(token_id) < SHORTEST_ID:
        raise NoSuchToken(token_id, several=False)
    found = Token.objects.select_related("owner").filter(hash__startswith=token_id.lower())[:2]
    if len(found) != 1:
        raise NoSuchToken(token_id, several=len(found) > 1)
    return found[0]
