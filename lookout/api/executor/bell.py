"""Bells for waiting agents: one connection a process listens to the database for all of them."""

import threading
import time
from collections import defaultdict
from typing import Any

import psycopg
import structlog
from django.db import connections

from lookout.api.closing import SLICE_SECONDS, is_closing
from scheduler.models.fleet import WORK_CHANNEL

PAUSE_SECONDS = 1.0
"""Between tries to reach the database."""
DEAF_SECONDS = 1.0
"""The longest wait while bells cannot be heard. Nobody looks as often without need."""

log = structlog.get_logger(__name__)


class WorkBell:
    """Counts the bells of each executor. A waiter takes a ticket, looks for work, and waits for a later bell.

    While the database cannot be listened to, waits are short, so that waiters look by themselves; when the listening
    begins or ends, everybody is rung, as bells may have been lost.
    """

    def __init__(self) -> None:
        self._rung: dict[str, int] = defaultdict(int)
        self._changed = threading.Condition()
        self._listening = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def ticket(self, executor: str) -> int:
        """The number of bells so far. Taken before a look, so that no bell falls between look and wait."""
        self._start()
        with self._changed:
            return self._rung[executor]

    def wait(self, executor: str, ticket: int, seconds: float) -> None:
        """Until a bell after the ticket, or so many seconds (fewer while deaf), or the end of the process."""
        end = time.monotonic() + (seconds if self.hears() else min(seconds, DEAF_SECONDS))
        with self._changed:
            while self._rung[executor] == ticket and not is_closing():
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, SLICE_SECONDS))

    def hears(self, *, within_seconds: float = 0.0) -> bool:
        """Whether bells can be heard, now or within so many seconds."""
        return self._listening.wait(within_seconds)

    def close(self) -> None:
        """Stop listening. The next ticket begins anew."""
        with self._changed:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            thread.join()

    def _start(self) -> None:
        with self._changed:
            if self._thread is None:
                self._stopped.clear()
                self._listening.clear()
                self._thread = threading.Thread(target=self._listen, name="work-bell", daemon=True)
                self._thread.start()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                with psycopg.connect(**_address(), autocommit=True) as line:
                    line.execute(f"LISTEN {WORK_CHANNEL}")
                    self._listening.set()
                    self._ring_all()
                    self._pass_on(line)
            except psycopg.Error as error:
                log.warning("Bells for executors cannot be heard; they look by themselves", error=str(error))
                self._go_deaf()
                self._stopped.wait(PAUSE_SECONDS)
        self._go_deaf()

    def _go_deaf(self) -> None:
        self._listening.clear()
        self._ring_all()

    def _ring_all(self) -> None:
        with self._changed:
            for executor in self._rung:
                self._rung[executor] += 1
            self._changed.notify_all()

    def _pass_on(self, line: psycopg.Connection[Any]) -> None:
        while not self._stopped.is_set():
            for bell in line.notifies(timeout=0.5, stop_after=1):
                with self._changed:
                    self._rung[bell.payload] += 1
                    self._changed.notify_all()


def _address() -> dict[str, Any]:
    """How Django reaches the database, for a connection of our own."""
    known: dict[str, Any] = connections["default"].get_connection_params()
    wanted = ("dbname", "user", "password", "host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey")
    return {name: known[name] for name in wanted if known.get(name)}


WORK_BELL = WorkBell()
"""The bell of this process."""
