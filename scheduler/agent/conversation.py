"""The agent's two standing conversations with the scheduler: what is there to do, and I am here."""

import threading
from collections.abc import Callable
from dataclasses import replace

from scheduler.agent.client import InvalidRequestError, NotAllowedError, SchedulerClient, UnreachableError
from scheduler.agent.complaints import Complaints
from scheduler.agent.wire import WireError
from scheduler.executors.protocol import Heartbeat, Work, WorkRequest

WAIT_SECONDS = 20.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
NOTHING_NEW_PAUSE = 0.25
LONGEST_STANDING = 30.0
"""What an agent lets itself be told to stay away."""
LEAVING = "The agent was stopped; it opens its nodes when it starts again."
_ERRORS = (UnreachableError, NotAllowedError, InvalidRequestError, WireError)


class Heart:
    """Says at an interval that the executor is there and what it has."""

    def __init__(
        self,
        client: SchedulerClient,
        *,
        interval_seconds: float,
        describe: Callable[[], Heartbeat],
        first_heard: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._interval = interval_seconds
        self._describe = describe
        self._first_heard = first_heard
        self._ended = False
        self._leaving = False
        self._woken = threading.Event()
        self.was_heard = threading.Event()
        """Set with the first heartbeat that the scheduler took: before it there is no point in asking for work."""
        self.has_left = threading.Event()
        """Set with the first that said that no node takes new runs any more."""
        self._thread = threading.Thread(target=self._beat, daemon=True, name="heartbeat")

    def start(self) -> None:
        """Begin, from a thread of its own."""
        self._thread.start()

    def leave(self) -> None:
        """Say at once, and from now on, that no node takes new runs. The agent after this one opens them again."""
        self._leaving = True
        self._woken.set()

    def close(self) -> None:
        """Stop."""
        self._ended = True
        self._woken.set()

    def _beat(self) -> None:
        complaints = Complaints("Heartbeat")
        pause = 0.0
        while not self._is_over(pause):
            leaving = self._leaving
            beat = self._describe()
            try:
                self._client.heartbeat(_closed(beat) if leaving else beat)
            except _ERRORS as error:
                complaints.about(error)
                pause = (
                    min(self._interval, max(FIRST_PAUSE, pause * 2))
                    if pause < self._interval
                    else self._interval
                )
            else:
                complaints.over()
                if not self.was_heard.is_set():
                    self._first_heard()
                self.was_heard.set()
                if leaving:
                    self.has_left.set()
                pause = self._interval

    def _is_over(self, pause: float) -> bool:
        if self._woken.wait(pause):
            self._woken.clear()
        return self._ended


def _closed(beat: Heartbeat) -> Heartbeat:
    nodes = tuple(replace(node, schedulable=False, notes=(LEAVING, *node.notes)) for node in beat.nodes)
    return replace(beat, nodes=nodes)


class Asker:
    """Asks for work, hands it to the loop, waits until it is dealt with, asks again."""

    def __init__(
        self,
        client: SchedulerClient,
        *,
        request: Callable[[float], WorkRequest],
        deliver: Callable[[Work, Callable[[], None]], None],
        after: threading.Event,
    ) -> None:
        self._client = client
        self._request = request
        self._deliver = deliver
        self._after = after
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_for_ever, daemon=True, name="work")

    def start(self) -> None:
        """Begin, from a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """Ask no more. An answer that still comes is dropped: its leases are handed out again."""
        self._ended.set()

    def _ask_for_ever(self) -> None:
        self._after.wait()
        complaints = Complaints("Asking for work")
        pause = 0.0
        last = Work()
        while not self._ended.wait(pause):
            try:
                work = self._client.work(self._request(WAIT_SECONDS))
            except _ERRORS as error:
                complaints.about(error)
                pause = min(max(FIRST_PAUSE, pause * 2), LONGEST_PAUSE)
                continue
            complaints.over()
            if self._ended.is_set():
                return
            # What the scheduler says again needs time here (a grace, a report on its way), not the same question at once.
            nothing_new = not work.is_empty and work == last
            pause = NOTHING_NEW_PAUSE if nothing_new else min(work.ask_again_seconds, LONGEST_STANDING)
            last = work
            self._hand_over(work)

    def _hand_over(self, work: Work) -> None:
        if work.is_empty:
            return
        done = threading.Event()
        self._deliver(work, done.set)
        while not done.wait(1.0):
            if self._ended.is_set():
                return
