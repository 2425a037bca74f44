"""Events of a job set as they happen: server-sent events, taken up again after the last one seen.

A stream ends when the server says so, restarts or is lost; the reader goes on from the number it had reached,
so that nothing is missed and nothing comes twice. Where all streams of a server are taken, it reads pages.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from lookout.wire.connection import Connection
from lookout.wire.errors import Busy, NothingAnswers, TooSlow, UnexpectedAnswer
from lookout.wire.views import Event, EventPage

SILENCE_SECONDS = 60.0
"""A stream silent for longer is taken for dead: the server sends a sign of life much more often."""
PATIENCE_SECONDS = 60.0
"""How long a lost server is looked for."""
PAGE = 1_000
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """A job set of one server, and how to wait for it. `pause` sleeps for so many seconds."""

    connection: Connection
    queue: str
    job_set: str
    patience_seconds: float = PATIENCE_SECONDS
    pause: Callable[[float], None] = time.sleep

    def page(self, *, after: int, limit: int = PAGE) -> EventPage:
        """The events after that number, at most so many."""
        query = {"queue": self.queue, "jobSet": self.job_set, "from": after, "limit": limit}
        answer = self.connection.ask("GET", "events", query=query)
        try:
            events = tuple(as_event(int(item["id"]), item["message"]) for item in answer["events"])
        except (KeyError, TypeError, ValueError) as error:
            raise UnexpectedAnswer(self.connection.url, f"an event that cannot be read ({error})") from error
        return EventPage(events=events, last=events[-1].id if events else after)

    def past(self, *, after: int) -> Iterator[Event]:
        """Every event there is after that number, and no waiting."""
        while (page := self.page(after=after)).events:
            yield from page.events
            after = page.last

    def follow(self, *, after: int) -> Iterator[Event]:
        """Every event after that number, for ever. Raises what the server refuses, and NothingAnswers when a
        server that had answered stays away longer than the patience.
        """
        waited, answered = 0.0, False
        while True:
            try:
                for event in self._one_turn(after=after):
                    after, waited, answered = event.id, 0.0, True
                    yield event
                waited, answered = 0.0, True
            except (NothingAnswers, TooSlow, UnexpectedAnswer):
                if not answered or waited >= self.patience_seconds:
                    raise
            waited += self._wait_longer(waited)

    def _one_turn(self, *, after: int) -> Iterator[Event]:
        try:
            yield from self._one_stream(after=after)
        except Busy as busy:
            yield from self._by_pages(busy, after=after)

    def _by_pages(self, busy: Busy, *, after: int) -> Iterator[Event]:
        """What there is by now; then a pause for as long as the server asks."""
        try:
            yield from self.past(after=after)
        except Busy as later:
            busy = later
        self.pause(busy.retry_after_seconds)

    def _one_stream(self, *, after: int) -> Iterator[Event]:
        query = {"queue": self.queue, "jobSet": self.job_set, "from": after}
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        opened = self.connection.stream(
            "events", query=query, headers=headers, silence_seconds=SILENCE_SECONDS
        )
        with opened as answer:
            try:
                for number, data in read_stream(answer.iter_lines()):
                    yield as_event(number, json.loads(data))
            except httpx.TransportError:
                return  # cut off in the middle, or silent for too long: the next stream goes on from here
            except ValueError as error:
                raise UnexpectedAnswer(
                    self.connection.url, f"an event that cannot be read ({error})"
                ) from error

    def _wait_longer(self, waited: float) -> float:
        seconds = min(max(waited, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
        self.pause(seconds)
        return seconds


def read_stream(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Id and data of each message of a server-sent event stream; comments and messages without an id pass by."""
    number: int | None = None
    data: list[str] = []
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id" and value.isdigit():
            number = int(value)
        elif field == "data":
            data.append(value)
        elif not line:
            if data and number is not None:
                yield number, "\n".join(data)
            data = []


def as_event(number: int, message: Any) -> Event:
    """`{"failed": {…}}` under its number. Raises ValueError where it is no event."""
    if not isinstance(message, dict) or len(message) != 1:
        raise ValueError(f"event {number} is not one event under its name")
    kind, fields = next(iter(message.items()))
    return Event(id=number, kind=kind, fields=fields)
