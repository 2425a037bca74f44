"""`./tack manage prepare`: what `tack up` needs from the database before anything else starts, told as JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from lookout.access import (
    TokenUnknown,
    ensure_admin,
    ensure_person,
    issue_sign_in_link,
    issue_token,
    token_of,
)
from lookout.models import Scope
from scheduler.config import ConfigurationInvalid
from scheduler.configured import configuration

AGENT_PERSON = "agent"
"""The person who owns the tokens of agents that `tack up` starts: reads, and may do nothing else."""


class Command(BaseCommand):
    """Brings the tables up to date; finds or makes tokens. Run twice, it finds what it made."""

    help = "Bring the tables up to date and make what `tack up` needs. Prints one JSON object."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--agent", metavar="EXECUTOR", required=True, help="the executor that needs a token"
        )
        parser.add_argument(
            "--with-admin", action="store_true", help="make an admin, a token and a sign-in link"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            configuration()
        except ConfigurationInvalid as error:
            raise CommandError(str(error)) from error
        call_command("migrate", interactive=False, verbosity=0)
        made = {"agentToken": _agent_token(options["agent"]), "apiToken": "", "signInPath": ""}
        if options["with_admin"]:
            admin = ensure_admin()
            made["apiToken"] = _kept("token", Scope.API) or issue_token(
                admin, note="tack up: the command line"
            )
            made["signInPath"] = issue_sign_in_link(admin)
        self.stdout.write(json.dumps(made))


def _agent_token(executor: str) -> str:
    kept = _kept("agent.token", Scope.EXECUTOR, executor=executor)
    return kept or issue_token(
        ensure_person(AGENT_PERSON), Scope.EXECUTOR, executor=executor, note="tack up: its own agent"
    )


def _kept(name: str, scope: Scope, *, executor: str = "") -> str:
    """The token an earlier start wrote under var/, when the database still knows it."""
    try:
        secret = (settings.VAR / name).read_text().split()[-1]
        token = token_of(secret)
    except (OSError, IndexError, TokenUnknown):
        return ""
    return secret if (token.scope, token.executor) == (str(scope), executor) else ""
