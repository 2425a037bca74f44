"""Troubles that last are said once in the log, and once that they are over."""

import logging

log = logging.getLogger(__name__)


class Complaints:
    """About one thing that is tried again and again."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = ""

    def about(self, error: Exception) -> None:
        """It failed. Said unless the last failure was the same."""
        if str(error) != self._last:
            log.warning("%s: %s", self._what, error)
        self._last = str(error)

    def over(self) -> None:
        """It worked. Said when it had not before."""
        if self._last:
            log.info("%s: works again.", self._what)
        self._last = ""
