"""`./tack person NAME`: make or change a person, and hand out what lets them in."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from lookout.access import ensure_person, issue_sign_in_link, issue_token
from lookout.management.server_command import ServerCommand
from lookout.models import Scope
from scheduler.actors import Role


class Command(ServerCommand):
    """Prints what was asked for on standard output, one line each, and nothing else."""

    help = "Make a person, or change one, and print a sign-in link or a token for them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="who")
        parser.add_argument(
            "--role", choices=[str(role) for role in Role], help="without it: as it was, or reader"
        )
        parser.add_argument(
            "--group", action="append", dest="groups", metavar="NAME", help="replaces the groups"
        )
        parser.add_argument("--sign-in-link", action="store_true", help="print a new sign-in link")
        parser.add_argument(
            "--url",
            default=settings.PUBLIC_URL,
            help="address the link begins with (TACK_URL, else the one that is known)",
        )
        parser.add_argument("--token", action="store_true", help="print a new token of the REST API")
        parser.add_argument(
            "--agent-token", metavar="EXECUTOR", help="print a new token for that executor's agent"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        role = Role(options["role"]) if options["role"] else None
        person = ensure_person(options["name"], role=role, groups=options["groups"])
        if options["sign_in_link"]:
            self._print_link(options["url"].rstrip("/"), issue_sign_in_link(person))
        if options["token"]:
            self.stdout.write(issue_token(person))
        if options["agent_token"]:
            self.stdout.write(issue_token(person, Scope.EXECUTOR, executor=options["agent_token"]))

    def _print_link(self, url: str, path: str) -> None:
        self.stdout.write(f"{url}{path}")
        if not url:
            self.stderr.write("Put Tack's address before it, or say it with --url or TACK_URL.")
