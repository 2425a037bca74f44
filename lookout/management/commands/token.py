"""`./tack token list|create|revoke`: tokens of people and of agents."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from lookout.access import issue_token
from lookout.management.server_command import ServerCommand
from lookout.models import Scope, Token
from lookout.tokens import NoSuchToken, revoke_tokens, tokens
from scheduler.models.clock import database_now

MOST_DAYS = 3_650
HEADINGS = ("ID", "OWNER", "GOOD FOR", "MADE", "EXPIRES", "NOTE")


class Command(ServerCommand):
    """`create` prints the token and nothing else; it is shown this once."""

    help = "List the tokens that were handed out, make one, or take some back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        words = parser.add_subparsers(dest="word", required=True, metavar="list|create|revoke")
        listing = words.add_parser("list", help="show tokens by id, never the secret")
        listing.add_argument("--owner", default="", metavar="NAME", help="only those of this person")
        making = words.add_parser("create", help="print a new token")
        making.add_argument("owner", metavar="NAME", help="the person it acts as")
        making.add_argument("--days", type=_days, help="how long it is good; without it until it is revoked")
        making.add_argument("--note", default="", metavar="TEXT", help="what it is for")
        making.add_argument(
            "--executor", default="", metavar="NAME", help="for this executor's agent, and for nothing else"
        )
        revoking = words.add_parser("revoke", help="take tokens back, at once")
        revoking.add_argument("ids", nargs="+", metavar="ID", help="as list shows it")

    def handle(self, *_: Any, **options: Any) -> None:
        match options["word"]:
            case "list":
                self._list(options["owner"])
            case "create":
                self.stdout.write(_create(options))
            case "revoke":
                self._revoke(options["ids"])

    def _list(self, owner: str) -> None:
        now = database_now()
        rows = [HEADINGS, *(_row(token, now) for token in tokens(owner=owner))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        for row in rows:
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write(line.rstrip())

    def _revoke(self, ids: list[str]) -> None:
        try:
            revoked = revoke_tokens(ids)
        except NoSuchToken as error:
            raise CommandError(str(error)) from error
        for token in revoked:
            self.stdout.write(f"Revoked token {token.public_id} of {token.owner.get_username()}")


def _create(options: dict[str, Any]) -> str:
    owner = User.objects.filter(username=options["owner"]).first()
    if owner is None:
        name = options["owner"]
        raise CommandError(f"There is no person '{name}'. Make one first: ./tack person {name}")
    return issue_token(
        owner,
        Scope.EXECUTOR if options["executor"] else Scope.API,
        executor=options["executor"],
        expires=timedelta(days=options["days"]) if options["days"] else None,
        note=options["note"],
    )


def _row(token: Token, now: datetime) -> tuple[str, ...]:
    good_for = f"executor {token.executor}" if token.executor else "REST"
    expires = "never" if token.expires_at is None else f"{token.expires_at:%Y-%m-%d %H:%M}"
    if token.expires_at is not None and token.expires_at <= now:
        expires = "expired"
    made = f"{token.created_at:%Y-%m-%d %H:%M}"
    return token.public_id, token.owner.get_username(), good_for, made, expires, token.note


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DAYS):
        raise ArgumentTypeError(f"takes a number of days from 1 to {MOST_DAYS}")
    return int(text)
