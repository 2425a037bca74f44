"""Events of a job set over REST: as pages, and as a stream."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction

from lookout.api import closing
from lookout.api.v1 import streams
from scheduler.actors import Role
from scheduler.models import Event, Job
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.states import EventKind
from tests.api.caller import Caller, caller
from tests.factories import make_job, make_queue

pytestmark = pytest.mark.django_db

WHERE = {"queue": "nightly", "jobSet": "a/b"}


@pytest.fixture
def bob() -> Caller:
    return caller("bob", Role.READER)


@pytest.fixture
def job() -> Job:
    return make_job(job_set="a/b")


def happen(job: Job, *, times: int = 1, kind: EventKind = EventKind.RUNNING) -> None:
    with transaction.atomic():
        Event.objects.append(
            NewEvent(
                job_set_id=job.job_set_id,
                job_id=job.id,
                kind=kind,
                created=database_now(),
                payload={"reason": "x"},
            )
            for _ in range(times)
        )


@contextmanager
def stream(who: Caller, *, after: int = 0, last_id: int | None = None) -> Iterator[Iterator[str]]:
    """The lines of a stream, read as they come; closed at the end as a web server does."""
    headers = {"Accept": "text/event-stream"} | ({} if last_id is None else {"Last-Event-ID": str(last_id)})
    response: Any = who.raw("GET", "v1/events", query={**WHERE, "from": after}, headers=headers)
    assert response.headers["Content-Type"] == "text/event-stream"
    try:
        yield (line for chunk in response for line in chunk.decode().splitlines())
    finally:
        response.close()


def numbers(lines: Iterator[str], count: int) -> list[int]:
    """The ids of the next so many events; their data is checked to be one event each."""
    found: list[int] = []
    for line in lines:
        if line.startswith("id: "):
            found.append(int(line.removeprefix("id: ")))
        if line.startswith("data: "):
            (fields,) = json.loads(line.removeprefix("data: ")).values()
            assert fields["queue"] == "nightly"
            if len(found) == count:
                break
    return found


def test_events_come_in_pages_with_the_number_to_go_on_from(bob: Caller, job: Job) -> None:
    happen(job, times=5)
    first = bob.get("v1/events", {**WHERE, "limit": "3"}).body
    assert [event["id"] for event in first["events"]] == [1, 2, 3]
    assert first["last"] == 3
    fields: dict[str, Any] = first["events"][0]["message"]["running"]
    assert fields.pop("created").endswith("Z")
    assert fields == {"jobId": job.id, "jobSetId": "a/b", "queue": "nightly", "reason": "x"}
    rest = bob.get("v1/events", {**WHERE, "from": "3"}).body
    assert ([event["id"] for event in rest["events"]], rest["last"]) == ([4, 5], 5)
    assert bob.get("v1/events", {**WHERE, "from": "5"}).body == {"events": [], "last": 5}


def test_a_job_set_that_does_not_exist_yet_has_no_events(bob: Caller) -> None:
    make_queue("nightly")
    assert bob.get("v1/events", WHERE).body == {"events": [], "last": 0}


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    ("query", "status", "paths"),
    [
        ({"queue": "none", "jobSet": "a"}, 404, []),
        ({"queue": "nightly"}, 400, ["jobSet"]),
        ({**WHERE, "from": "-1"}, 400, ["from"]),
        ({**WHERE, "from": "x"}, 400, ["from"]),
        ({**WHERE, "limit": "10001"}, 400, ["limit"]),
        ({**WHERE, "watch": "true"}, 400, ["watch"]),
    ],
)
def test_what_makes_no_sense_is_refused_as_json_whatever_was_asked_for(
    bob: Caller, job: Job, accept: str, query: dict[str, str], status: int, paths: list[str]
) -> None:
    refused = bob.get("v1/events", query, headers={"Accept": accept})
    assert (refused.status, refused.paths) == (status, paths)


@pytest.mark.django_db(transaction=True)
def test_a_stream_goes_on_where_the_last_one_ended_while_others_write(bob: Caller, job: Job) -> None:
    happen(job, times=3)
    done = threading.Event()

    def write() -> None:
        try:
            for _ in range(40):
                happen(job, times=2)
        finally:
            connection.close()
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen: list[int] = []
    while len(seen) < 83:
        with stream(bob, last_id=seen[-1] if seen else None) as lines:
            seen += numbers(lines, min(10, 83 - len(seen)))
    writer.join()
    assert done.is_set()
    assert seen == list(range(1, 84))


@pytest.mark.django_db(transaction=True)
def test_the_last_id_wins_over_from(bob: Caller, job: Job) -> None:
    happen(job, times=5)
    with stream(bob, after=1, last_id=3) as lines:
        assert numbers(lines, 2) == [4, 5]
    with stream(bob, after=1) as lines:
        assert numbers(lines, 4) == [2, 3, 4, 5]


def test_asking_for_the_head_of_a_stream_opens_none(bob: Caller, job: Job) -> None:
    answer = bob.call("HEAD", "v1/events", query=WHERE, headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")


def test_a_last_id_that_is_no_number_is_refused(bob: Caller, job: Job) -> None:
    refused = bob.get("v1/events", WHERE, headers={"Accept": "text/event-stream", "Last-Event-ID": "x"})
    assert (refused.status, refused.paths) == (400, ["Last-Event-ID"])


@pytest.mark.django_db(transaction=True)
def test_a_ninth_stream_is_asked_to_come_back_and_a_closed_one_makes_room(bob: Caller, job: Job) -> None:
    happen(job)
    open_streams = [stream(bob) for _ in range(8)]
    lines = [each.__enter__() for each in open_streams]
    asked = {"Accept": "text/event-stream"}
    refused = bob.get("v1/events", WHERE, headers=asked)
    assert (refused.status, refused.error["code"]) == (503, "unavailable")
    assert int(refused.headers["Retry-After"]) > 0
    assert bob.get("v1/events", WHERE).status == 200
    assert numbers(lines[1], 1) == [1]
    for each in open_streams:  # one was read from, the others never were
        each.__exit__(None, None, None)
    for _ in range(8):
        with stream(bob) as again:
            assert numbers(again, 1) == [1]


@pytest.mark.django_db(transaction=True)
def test_a_refused_stream_takes_no_place(bob: Caller, job: Job) -> None:
    for _ in range(10):
        assert (
            bob.get("v1/events", {**WHERE, "queue": "none"}, headers={"Accept": "text/event-stream"}).status
            == 404
        )
    happen(job)
    with stream(bob) as lines:
        assert numbers(lines, 1) == [1]


@pytest.mark.django_db(transaction=True)
def test_a_stream_holds_no_database_connection_between_looks(bob: Caller, job: Job) -> None:
    happen(job)
    with stream(bob) as lines:
        assert numbers(lines, 1) == [1]
        assert connection.connection is None


@pytest.mark.django_db(transaction=True)
def test_a_stream_ends_with_the_process(bob: Caller, job: Job) -> None:
    happen(job)
    try:
        with stream(bob) as lines:
            assert numbers(lines, 1) == [1]
            threading.Timer(0.3, closing.close_now).start()
            begin = time.monotonic()
            assert [line for line in lines if line] == []
            assert time.monotonic() - begin < 3
    finally:
        closing.close_now(closing=False)


@pytest.mark.django_db(transaction=True)
def test_a_stream_ends_after_its_time_and_shows_signs_of_life(
    bob: Caller, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LONGEST_SECONDS", 1.0)
    monkeypatch.setattr(streams, "SIGN_OF_LIFE_SECONDS", 0.2)
    with stream(bob) as lines:
        told = list(lines)
    assert told[0].startswith("retry: ")
    assert ": still here" in told
