"""`tack watch`: the model's lines, until all jobs of the set have ended."""

import json

import pytest

from lookout.cli.watch import WatchedJobSet
from lookout.client import Event
from tests.cli.answers import event, event_page
from tests.cli.conftest import Tack
from tests.cli.small_server import Answer, Asked, SmallServer, refusal, sent_event, stream

WATCH = ("watch", "nightly", "report")


def told(*events: tuple[int, str, str]) -> WatchedJobSet:
    """A job set of which these events were told: number, kind, job."""
    watched = WatchedJobSet()
    for number, kind, job_id in events:
        watched.take(Event(id=number, kind=kind, fields={"jobId": job_id}))
    return watched


def test_a_set_that_has_ended_is_told_and_left(server: SmallServer, tack: Tack) -> None:
    server.on(
        "GET events",
        event_page(event(1, "submitted"), event(2, "queued"), event(3, "leased", clusterId="local")),
    )
    server.on("GET events", event_page(event(4, "running", podNumber=0), event(5, "succeeded", podNumber=0)))
    server.on("GET events", event_page())
    said = tack(*WATCH)
    assert said.code == 0
    first, *lines = said.out.splitlines()
    assert first == "Watching job set report"
    assert [line.split(" | ")[2] for line in lines] == [
        "JobSubmittedEvent, job id: 01k4zq7d3w8v2n5x9c6b1m0tfa",
        "JobQueuedEvent, job id: 01k4zq7d3w8v2n5x9c6b1m0tfa",
        "JobLeasedEvent, job id: 01k4zq7d3w8v2n5x9c6b1m0tfa",
        "JobRunningEvent, job id: 01k4zq7d3w8v2n5x9c6b1m0tfa pod: 0",
        "JobSucceededEvent, job id: 01k4zq7d3w8v2n5x9c6b1m0tfa pod: 0",
    ]
    assert lines[-1].split(" | ")[1] == (
        "Queued:   0, Leased:   0, Pending:   0, Running:   0, Succeeded:   1, Failed:   0, Cancelled:   0"
    )


def test_a_retryable_failure_counts_as_back_in_the_queue_and_is_told_all_the_same(
    server: SmallServer, tack: Tack
) -> None:
    failed = event(
        2, "failed", reason="out of memory", retryable=True, failureCategory="oom", retryPolicyName="oom-grow"
    )
    server.on("GET events", event_page(event(1, "running"), failed, event(3, "succeeded")))
    server.on("GET events", event_page())
    said = tack(*WATCH)
    assert said.code == 0
    lines = said.out.splitlines()
    assert "Queued:   1," in lines[2]
    assert "Failed:   0," in lines[2]
    assert lines[3] == "Job failed: out of memory"
    assert lines[4] == "Retried by retry policy oom-grow, category oom. The job is queued again."


def test_a_job_that_failed_for_good_gives_an_exit_code_of_its_own(server: SmallServer, tack: Tack) -> None:
    failed = event(2, "failed", job_id="b", reason="Retry policy: matched rule: Fail", retryable=False)
    server.on("GET events", event_page(event(1, "succeeded", job_id="a"), failed))
    server.on("GET events", event_page())
    said = tack(*WATCH)
    assert said.code == 3
    assert said.out.endswith("Job failed: Retry policy: matched rule: Fail\n")


def test_a_rejected_job_counts_as_failed_and_had_no_pod(server: SmallServer, tack: Tack) -> None:
    server.on("GET events", event_page(event(1, "failed", cause="Rejected", reason="No room.")))
    server.on("GET events", event_page())
    said = tack(*WATCH)
    assert (said.code, "pod" in said.out, "Failed:   1" in said.out) == (3, False, True)


def test_a_cancelled_job_has_not_failed(server: SmallServer, tack: Tack) -> None:
    server.on("GET events", event_page(event(1, "cancelled")))
    server.on("GET events", event_page())
    assert tack(*WATCH).code == 0


def test_a_set_that_goes_on_is_followed_until_it_ends(server: SmallServer, tack: Tack) -> None:
    later = [sent_event(3, "running", jobId="a"), sent_event(4, "succeeded", jobId="a")]

    def answer(asked: Asked) -> Answer:
        after = int(asked.query["from"][0])
        if asked.headers["Accept"] == "text/event-stream":
            return stream(*later[after - 2 :])
        return Answer(
            json=event_page()
            if after
            else event_page(event(1, "queued", job_id="a"), event(2, "leased", job_id="a"))
        )

    server.on("GET events", answer)
    said = tack(*WATCH)
    assert said.code == 0
    assert "JobSucceededEvent, job id: a" in said.out


def test_a_job_submitted_while_the_others_ended_is_waited_for(server: SmallServer, tack: Tack) -> None:
    server.on("GET events", event_page(event(1, "queued", job_id="a")))
    server.on("GET events", event_page())
    server.on("GET events", stream(sent_event(2, "succeeded", jobId="a"), sent_event(3, "queued", jobId="b")))
    server.on("GET events", event_page(event(3, "queued", job_id="b")))  # the look before leaving
    server.on("GET events", stream(sent_event(4, "succeeded", jobId="b")))
    server.on("GET events", event_page())
    said = tack(*WATCH)
    assert said.code == 0
    assert "JobSucceededEvent, job id: b" in said.out


def test_raw_events_are_a_line_of_json_each(server: SmallServer, tack: Tack) -> None:
    sent = event(1, "failed", reason="größer", retryable=False)
    server.on("GET events", event_page(sent))
    server.on("GET events", event_page())
    said = tack(*WATCH, "--raw")
    assert (said.code, json.loads(said.out)) == (3, sent)


def test_an_unknown_job_set_is_told(server: SmallServer, tack: Tack) -> None:
    server.on("GET events", refusal(404, "not_found", "There is no job set 'report' in queue 'nightly'."))
    said = tack(*WATCH)
    assert (said.code, said.err) == (1, "Error: There is no job set 'report' in queue 'nightly'.\n")


def test_a_set_without_jobs_is_waited_for_and_told_so(server: SmallServer, tack: Tack) -> None:
    server.on("GET events", event_page())
    server.on("GET events", stream(sent_event(1, "cancelled", jobId="a")))
    server.on("GET events", event_page())
    said = tack(*WATCH)
    assert (said.code, said.err) == (0, "It has no jobs yet. Waiting for the first in queue nightly.\n")


def test_a_set_without_jobs_has_not_ended() -> None:
    assert not told().has_ended


@pytest.mark.parametrize(
    "kind", ["leaseReturned", "leaseExpired", "queued", "submitted", "leased", "pending", "running"]
)
def test_a_job_goes_on_after(kind: str) -> None:
    assert not told((1, kind, "a")).has_ended


def test_events_of_other_kinds_change_no_state() -> None:
    assert told((1, "succeeded", "a"), (2, "utilisation", "a"), (3, "cancelling", "b")).has_ended
