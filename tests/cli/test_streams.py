"""Events as they happen: taken up again after the last one, none twice, none missed."""

from itertools import islice

import pytest

from lookout.client import Client, Event, NotFound, NothingAnswers, Refused, UnexpectedAnswer
from lookout.wire.streams import read_stream
from tests.cli.answers import event, event_page
from tests.cli.small_server import Answer, SmallServer, refusal, sent_event, stream

PLACE = ("nightly", "report/2026")


class Pauses:
    """Stands in for waiting: remembers how long, and may do something meanwhile."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def follow(client: Client, pauses: Pauses, *, after: int = 0, patience_seconds: float = 60.0) -> list[Event]:
    """The first three events."""
    return list(
        islice(client.follow(*PLACE, after=after, patience_seconds=patience_seconds, pause=pauses), 3)
    )


def test_events_come_with_their_number_kind_and_fields(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on(
        "GET events",
        stream(
            "retry: 500\n\n",
            sent_event(1, "queued", jobId="a"),
            ": still here\n\n",
            sent_event(2, "failed", jobId="a", reason="Lease expired", retryable=True),
            sent_event(3, "leased", jobId="a"),
        ),
    )
    first, second, third = follow(client, pauses)
    assert (first.id, first.kind, first.job_id) == (1, "queued", "a")
    assert (second.reason, second.retryable) == ("Lease expired", True)
    assert (third.reason, third.retryable) == ("", False)
    asked = server.asked[-1]
    assert asked.headers["Accept"] == "text/event-stream"
    assert asked.query["queue"] == ["nightly"]
    assert asked.query["jobSet"] == ["report/2026"]


def test_a_stream_that_ends_is_taken_up_after_the_last_event(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on("GET events", stream(sent_event(4, "queued"), sent_event(5, "leased")))
    server.on("GET events", stream())
    server.on("GET events", stream(sent_event(6, "pending")))
    assert [event.id for event in follow(client, pauses, after=3)] == [4, 5, 6]
    assert [asked.query["from"] for asked in server.asked] == [["3"], ["5"], ["5"]]
    assert [asked.headers["Last-Event-ID"] for asked in server.asked] == ["3", "5", "5"]
    assert len(pauses.seconds) == 2


def test_an_event_cut_in_the_middle_is_read_again_whole(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on("GET events", stream(sent_event(1, "queued"), 'id: 2\ndata: {"leased": {"jo'))
    server.on("GET events", stream(sent_event(2, "leased", jobId="a"), sent_event(3, "pending")))
    assert [(event.id, event.kind) for event in follow(client, pauses)] == [
        (1, "queued"),
        (2, "leased"),
        (3, "pending"),
    ]


def test_where_all_streams_are_taken_events_are_read_as_pages(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on("GET events", refusal(503, "unavailable", "All event streams are taken.", Retry_After="5"))
    server.on("GET events", event_page(event(1, "queued"), event(2, "leased")))
    server.on("GET events", event_page())
    server.on("GET events", stream(sent_event(3, "pending")))
    assert [event.id for event in follow(client, pauses)] == [1, 2, 3]
    assert [asked.query["from"] for asked in server.asked] == [["0"], ["0"], ["2"], ["2"]]
    assert pauses.seconds[0] == 5.0


def test_a_server_that_has_enough_of_pages_too_is_asked_again_when_it_says(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on("GET events", refusal(503, "unavailable", "All event streams are taken.", Retry_After="5"))
    server.on("GET events", event_page(event(1, "queued")))
    server.on("GET events", refusal(429, "too_many_requests", "Too many.", Retry_After="40"))
    server.on("GET events", stream(sent_event(2, "leased"), sent_event(3, "pending")))
    assert [event.id for event in follow(client, pauses)] == [1, 2, 3]
    assert pauses.seconds[0] == 40.0


def test_a_server_that_restarts_is_waited_for(server: SmallServer, client: Client, pauses: Pauses) -> None:
    server.on("GET events", stream(sent_event(1, "queued"), sent_event(2, "leased")))
    server.on("GET events", Answer(status=502, pieces=("Bad gateway",), media="text/plain"))
    server.on("GET events", stream(sent_event(3, "pending")))
    assert [event.id for event in follow(client, pauses)] == [1, 2, 3]


def test_a_server_that_stays_away_is_given_up_with_growing_pauses(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on("GET events", stream(sent_event(1, "queued")))
    events = client.follow(*PLACE, patience_seconds=3.0, pause=pauses)
    assert next(events).id == 1
    server.close()
    with pytest.raises(NothingAnswers):
        next(events)
    assert sum(pauses.seconds) >= 3.0
    assert pauses.seconds == sorted(pauses.seconds)


def test_a_server_that_was_never_there_is_told_at_once(
    client: Client, server: SmallServer, pauses: Pauses
) -> None:
    server.close()
    with pytest.raises(NothingAnswers):
        follow(client, pauses)
    assert pauses.seconds == []


def test_what_is_refused_is_told_at_once(server: SmallServer, client: Client, pauses: Pauses) -> None:
    server.on(
        "GET events", refusal(404, "not_found", "There is no job set 'report/2026' in queue 'nightly'.")
    )
    with pytest.raises(NotFound, match="no job set"):
        follow(client, pauses)


@pytest.mark.parametrize("data", ["no json", "[]", '{"a": 1, "b": 2}', '"text"'])
def test_a_stream_of_something_else_is_given_up(
    server: SmallServer, client: Client, pauses: Pauses, data: str
) -> None:
    server.on("GET events", stream(f"id: 1\ndata: {data}\n\n"))
    with pytest.raises(UnexpectedAnswer):
        follow(client, pauses)


def test_past_events_are_all_read_and_not_waited_for(server: SmallServer, client: Client) -> None:
    server.on("GET events", event_page(event(1, "queued"), event(2, "leased")))
    server.on("GET events", event_page(event(3, "pending")))
    server.on("GET events", event_page())
    assert [event.id for event in client.events(*PLACE)] == [1, 2, 3]
    assert [asked.query["from"][0] for asked in server.asked] == ["0", "2", "3"]


def test_a_page_of_something_else_is_told_as_such(server: SmallServer, client: Client) -> None:
    server.on("GET events", {"events": [{"id": "x"}]})
    with pytest.raises(UnexpectedAnswer):
        client.event_page(*PLACE)


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        (["id: 1", "data: a", ""], [(1, "a")]),
        (["id:1", "data:a", "data: b", ""], [(1, "a\nb")]),
        ([": comment", "", "event: x", "id: 1", "data: a", "", "data: b", ""], [(1, "a"), (1, "b")]),
        (["data: a", ""], []),
        (["id: x", "data: a", ""], []),
        (["id: 1", "data: a"], []),
        (["id: 1", "", "retry: 10", ""], []),
    ],
)
def test_the_lines_of_a_stream_are_read_as_the_standard_says(
    lines: list[str], messages: list[tuple[int, str]]
) -> None:
    assert list(read_stream(lines)) == messages


def test_a_refusal_while_following_keeps_its_code(
    server: SmallServer, client: Client, pauses: Pauses
) -> None:
    server.on("GET events", refusal(500, "internal", "Tack failed to answer."))
    with pytest.raises(Refused) as refused:
        follow(client, pauses)
    assert refused.value.code == "internal"
