"""Events of a job set as they happen: server-sent events, bounded in number and time."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from lookout.api.closing import is_closing, let_go, pause
from lookout.api.errors import Unavailable

MOST_STREAMS = 8
"""In one process: each holds a thread of it."""
LONGEST_SECONDS = 300.0
"""Then the stream ends and is taken up again by its last id."""
LOOK_SECONDS = 0.25
SIGN_OF_LIFE_SECONDS = 15.0
"""A line that means nothing, so that both ends notice when the other is gone."""
RETRY_AFTER_SECONDS = 5

type Message = tuple[int, dict[str, Any]]
"""The number of an event, and `{"failed": {…}}`."""


class Places:
    """The streams a process has room for."""

    def __init__(self, most: int, *, full: str) -> None:
        """`full` is told where there is no place left."""
        self._left = most
        self._full = full
        self._lock = threading.Lock()

    def take(self) -> Callable[[], None]:
        """Take a place; the answer gives it back, once. Raises Unavailable when all are taken."""
        with self._lock:
            if not self._left:
                raise Unavailable(self._full, retry_after=RETRY_AFTER_SECONDS)
            self._left -= 1
        return self._giver()

    def _giver(self) -> Callable[[], None]:
        given = False

        def give_back() -> None:
            nonlocal given
            with self._lock:
                self._left += not given
                given = True

        return give_back


PLACES = Places(
    MOST_STREAMS, full="All event streams are taken. Ask for JSON, or try again in a few seconds."
)


class EventStream:
    """The body of a stream. Closing it gives its place back, whether or not anything was read of it."""

    def __init__(self, look: Callable[[int], Sequence[Message]], *, after: int) -> None:
        self._look = look
        self._after = after
        self._end = time.monotonic() + LONGEST_SECONDS
        self.close = PLACES.take()

    def __iter__(self) -> Iterator[str]:
        yield "retry: 500\n\n"
        spoke = time.monotonic()
        while time.monotonic() < self._end and not is_closing():
            told = self._news()
            if told:
                yield told
                spoke = time.monotonic()
                continue
            if time.monotonic() - spoke > SIGN_OF_LIFE_SECONDS:
                yield ": still here\n\n"
                spoke = time.monotonic()
            pause(LOOK_SECONDS)

    def _news(self) -> str:
        """What happened since the last look, as text of the stream."""
        try:
            messages = self._look(self._after)
        finally:
            let_go()
        if messages:
            self._after = messages[-1][0]
        return "".join(f"id: {number}\ndata: {json.dumps(message)}\n\n" for number, message in messages)


def stream_answer(stream: EventStream) -> StreamingHttpResponse:
    """The answer that carries a stream; proxies are asked not to hold it back."""
    answer = StreamingHttpResponse(stream, content_type="text/event-stream")
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"
    return answer
