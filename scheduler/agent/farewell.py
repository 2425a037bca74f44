"""Ends an agent in order: the scheduler knows that it takes no more, and only then leases go back."""

import queue
import threading
from collections.abc import Callable

from scheduler.agent.client import InvalidRequestError, NotAllowedError, SchedulerClient, UnreachableError
from scheduler.agent.conversation import Heart
from scheduler.agent.loop import Agent, StopAgent
from scheduler.agent.wire import WireError
from scheduler.executors.protocol import Work, WorkRequest

PATIENCE_SECONDS = 3.0
"""How long a scheduler that does not answer keeps runs from being told to end."""


class Farewell:
    """Waits to be asked, on a thread of its own."""

    def __init__(
        self, client: SchedulerClient, *, request: Callable[[float], WorkRequest], heart: Heart, agent: Agent
    ) -> None:
        self._client = client
        self._request = request
        self._heart = heart
        self._agent = agent
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._wait, daemon=True, name="farewell")

    def start(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def begin(self) -> None:
        """Go away. Safe in a signal handler, and harmless when called twice."""
        self._asked.put(None)

    def _wait(self) -> None:
        self._asked.get()
        self._heart.leave()
        is_known = self._heart.has_left.wait(PATIENCE_SECONDS)
        # Leases from before the nodes were closed may be unheard of here; none comes after these.
        self._agent.tell(StopAgent(last=self._last_word() if is_known else Work()))

    def _last_word(self) -> Work:
        try:
            return self._client.work(self._request(0.0))
        except (UnreachableError, NotAllowedError, InvalidRequestError, WireError):
            return Work()
