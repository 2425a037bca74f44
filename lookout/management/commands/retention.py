"""`./tack retention`: remove what is older than the configuration keeps it, at once, and tell how far it is."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from lookout.management.server_command import ServerCommand
from scheduler.config import Configuration, ConfigurationInvalid
from scheduler.configured import configuration
from scheduler.models import HistoryMark
from scheduler.retention import Removed, remove_some, what_is_too_old
from scheduler.rollups import roll_up

TOLD_SECONDS = 5.0
"""From one line of progress to the next."""


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
            self.stdout.write(f"Too old: {what_is_too_old(config=config)}.")
        else:
            self.stdout.write(f"Removed: {self._remove(config)}.")

    def _remove(self, config: Configuration) -> Removed:
        """Everything that is too old; what is not added up yet is added up first."""
        while roll_up(seconds=TOLD_SECONDS, waits=True):
            self._tell(f"Added up until {HistoryMark.objects.get().closed_until:%Y-%m-%d %H:%M} so far.")
        removed, told_at = Removed(more=True), time.monotonic()
        while removed.more:
            removed += remove_some(config=config, waits=True)
            if removed.more and time.monotonic() - told_at >= TOLD_SECONDS:
                self._tell(f"Removed so far: {removed}.")
                told_at = time.monotonic()
        return removed

    def _tell(self, progress: str) -> None:
        """No error, though it does not stand among the results."""
        self.stderr.write(progress, style_func=str)
