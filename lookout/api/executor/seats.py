"""Seats for agents that wait for work: a waiting agent holds a thread, and people need threads, too."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

ASKS_PER_SECOND = 20.0
"""How often agents without a seat may ask one process, all of them together."""
SHORTEST, LONGEST = 1.0, 15.0
"""Seconds an agent without a seat is told to stay away."""
REMEMBERED_SECONDS = 30.0


class Seats:
    """A bounded number of waiting agents in this process; the others are told when to ask again."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count) if count else None
        self._standing: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Whether there is a seat to wait in; it is given back at the end. Never waits for one."""
        seated = self._free is not None and self._free.acquire(blocking=False)
        try:
            yield seated
        finally:
            if seated and self._free is not None:
                self._free.release()

    def ask_again_seconds(self, executor: str) -> float:
        """When an agent that found no seat shall ask again, so that all like it together do not ask too often."""
        now = time.monotonic()
        with self._lock:
            self._standing[executor] = now
            if len(self._standing) > 1_000 or random.random() < 0.05:  # noqa: S311
                self._forget(before=now - REMEMBERED_SECONDS)
            standing = len(self._standing)
        seconds = min(LONGEST, max(SHORTEST, standing / ASKS_PER_SECOND))
        return seconds * random.uniform(0.75, 1.25)  # noqa: S311 - so that they do not come in step

    def _forget(self, *, before: float) -> None:
        self._standing = {name: at for name, at in self._standing.items() if at >= before}


SEATS = Seats(settings.TACK_LONG_POLLS)
