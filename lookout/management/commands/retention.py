"""`./tack retention`: remove what is older than the configuration keeps it, at once, and tell how far it is."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from lookout.management.server_command import ServerCommand
from scheduler.config import Configuration, ConfigurationInvalid
from scheduler.configured import configuration
from scheduler.retention import Removed, remove_some, what_is_too_old
from scheduler.rollups import roll_up

TOLD_EVERY = 20
"""Batches."""


class Command(ServerCommand):
    """What the worker does minute by minute, done to the end. Stopped at any moment, it leaves nothing half done."""

    help = "Remove what is older than retention.jobs, retention.output and retention.clientIds say."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="tell what would go, and change nothing")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            config = configuration()
        except ConfigurationInvalid as error:
            raise CommandError(str(error)) from error
        if options["dry_run"]:
            self._tell("Too old", what_is_too_old(config=config))
        else:
            self._tell("Removed", self._remove(config))

    def _remove(self, config: Configuration) -> Removed:
        """Everything that is too old; what is not added up yet is added up first."""
        while roll_up():
            pass
        removed, batches = Removed(more=True), 0
        while removed.more:
            removed, batches = removed + remove_some(config=config), batches + 1
            if batches % TOLD_EVERY == 0 and sys.stderr.isatty():
                self.stderr.write(f"{removed.jobs:,} jobs, {removed.outputs:,} outputs", ending="\r")
        return removed

    def _tell(self, what: str, found: Removed) -> None:
        self.stdout.write(
            f"{what}: {found.jobs:,} jobs with {found.runs:,} runs and {found.events:,} events; "
            f"{found.outputs:,} outputs; {found.client_ids:,} client ids."
        )
