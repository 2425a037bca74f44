"""Events of a job set: a page at a time as JSON, or as they happen."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.bodies import query_of
from lookout.api.endpoint import Endpoint, answer
from lookout.api.lists import EventsRate
from lookout.api.schema import described
from lookout.api.shapes import FromOne, Named
from lookout.api.v1 import other_examples
from lookout.api.v1.streams import EventStream, Message, stream_answer
from policies.problems import DocumentInvalid, Problem
from scheduler.queries.events import MAX_LIMIT, events_after

STREAM = "text/event-stream"
STREAM_BATCH = 500


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EventsQuery:
    """Which events."""

    queue: str
    job_set: str
    after: Annotated[int, Named("from")] = 0
    """Only those with a higher number; 0 for all."""
    limit: Annotated[int, FromOne(MAX_LIMIT)] = 1_000
    """Of a page; a stream has none."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EventView:
    """An event of a job set."""

    id: int
    """Counts from 1 within the job set, without gaps, in the order things were recorded."""
    message: dict[str, dict[str, Any]]
    """One key, the kind of event, with its fields: jobId, jobSetId, queue, created and those of the kind."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EventList:
    """Some events of a job set, in order."""

    events: tuple[EventView, ...]
    last: int
    """The number to go on from."""


class Events(Endpoint):
    """What happened to the jobs of a job set."""

    throttle_classes = (EventsRate,)

    @described(
        "listEvents",
        tag="Events",
        query=EventsQuery,
        answer=EventList,
        others={(200, STREAM): OpenApiTypes.STR},
        example=other_examples.EVENTS,
        texts={STREAM: other_examples.EVENT_STREAM},
        refusals=(400, 404, 429, 503),
        headers={
            "Accept": "text/event-stream for events as they happen; then `id` is the number and `data` the message.",
            "Last-Event-ID": "The number to go on from, as browsers send it; it wins over `from`.",
        },
    )
    def get(self, request: Request) -> Response | StreamingHttpResponse:
        """Events of a job set after a number: a page of them, or a stream.

        A job set that does not exist yet has none. A stream ends after five minutes or when the server stops,
        and is taken up again with the last id. A process serves eight at a time; beyond that the answer is 503
        with `Retry-After`.
        """
        query = query_of(request, EventsQuery)
        if request.method == "GET" and STREAM in request.META.get("HTTP_ACCEPT", ""):
            after = _last_seen(request, query.after)
            events_after(query.queue, query.job_set, after, 1)  # refuses what cannot be streamed
            return stream_answer(EventStream(partial(_look, query.queue, query.job_set), after=after))
        page = events_after(query.queue, query.job_set, query.after, query.limit)
        events = tuple(EventView(id=event.id, message=_plain(event.message)) for event in page.events)
        return answer(EventList(events=events, last=page.last))


def _look(queue: str, job_set: str, after: int) -> Sequence[Message]:
    page = events_after(queue, job_set, after, STREAM_BATCH)
    return [(event.id, _plain(event.message)) for event in page.events]


def _plain(message: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {kind: dict(fields) for kind, fields in message.items()}


def _last_seen(request: Request, after: int) -> int:
    sent = request.META.get("HTTP_LAST_EVENT_ID", "").strip()
    if not sent:
        return after
    if not (sent.isascii() and sent.isdigit() and len(sent) < 19):
        message = "takes the number of an event, 0 for the beginning."
        raise DocumentInvalid([Problem(path="Last-Event-ID", message=message, code="invalid")])
    return int(sent)
