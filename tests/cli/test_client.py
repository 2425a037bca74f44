"""The Python client: answers as values, refusals as exceptions, pages one after the other."""

import re
import socket
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from itertools import islice
from typing import Any

import pytest

from lookout.client import (
    Busy,
    Client,
    Conflict,
    Failure,
    Filters,
    Invalid,
    Node,
    NotFound,
    NothingAnswers,
    NotPermitted,
    NotSignedIn,
    Problem,
    Refused,
    TackError,
    TooSlow,
    UnexpectedAnswer,
    filters_in,
)
from tests.cli.answers import (
    JOB_ID,
    MEBIBYTE,
    POLICY_TEXT,
    SENTENCE,
    failed_run,
    job_view,
    policy_view,
    queue_view,
    run_view,
)
from tests.cli.small_server import TOKEN, Answer, Asked, SmallServer, refusal


def test_a_job_comes_with_its_runs_and_their_decisions(server: SmallServer, client: Client) -> None:
    server.on(f"GET jobs/{JOB_ID}", job_view() | {"spec": {}, "runs": [failed_run(), run_view(2)]})
    job = client.job(JOB_ID)
    assert job.has_ended
    assert job.last_failure == Failure(category="oom")
    assert job.submitted_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    first, second = job.runs
    assert (first.failure, second.failure) == (Failure(category="oom"), None)
    assert first.decision is not None
    assert first.decision.sentence == SENTENCE
    assert first.decision.policy_budget is not None
    assert first.decision.policy_budget.after is not None
    assert first.decision.policy_budget.after.used == 1
    assert second.memory_peak_bytes == 60 * MEBIBYTE


def test_what_a_newer_tack_says_besides_is_kept_in_json(server: SmallServer, client: Client) -> None:
    server.on("GET queues/nightly", queue_view("nightly", gangs=3))
    assert client.queue("nightly").json["gangs"] == 3


def test_names_travel_as_one_part_of_the_path(server: SmallServer, client: Client) -> None:
    server.on("GET queues/a/b c?", queue_view("a/b c?"))
    assert client.queue("a/b c?").name == "a/b c?"


def test_the_token_goes_with_every_request(server: SmallServer) -> None:
    with Client(server.url, token="other") as stranger, pytest.raises(NotSignedIn):
        stranger.queues()
    assert server.asked[-1].headers["Authorization"] == "Bearer other"


def test_jobs_come_page_by_page_as_they_are_asked_for(server: SmallServer, client: Client) -> None:
    server.on("GET jobs", {"jobs": [job_view("a"), job_view("b")], "next": "from-b"})
    server.on("GET jobs", {"jobs": [job_view("c")], "next": None})
    jobs = client.jobs(queue=["nightly"], state=["failed", "queued"], category_last=["oom"])
    assert [job.job_id for job in islice(jobs, 2)] == ["a", "b"]
    assert len(server.asked) == 1
    assert [job.job_id for job in jobs] == ["c"]
    first, second = (asked.query for asked in server.asked)
    assert first == {
        "queue": ["nightly"],
        "state": ["failed", "queued"],
        "category.last": ["oom"],
        "limit": ["500"],
    }
    assert second == first | {"cursor": ["from-b"]}


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("filters", "sent"),
    [
        (None, {}),
        ("queue=nightly&retries>1", {"queue": ["nightly"], "retries>1": [""]}),
        ({"exitCode.any>": 128, "coreSeconds.any>=": 0.5}, {"exitCode.any>": ["128"], "coreSeconds.any>": ["0.5"]}),
        ({"activeJobSet": True, "retryable.any": False}, {"activeJobSet": ["yes"], "retryable.any": ["no"]}),
        ({"owner": Colour.RED, "queue!": ("a", "b")}, {"owner": ["red"], "queue!": ["a", "b"]}),
        ({"submitted>": datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))},
         {"submitted>": ["2026-03-01T12:00:00Z"]}),
        ({"submitted<": datetime(2026, 3, 1, 12)}, {"submitted<": ["2026-03-01T12:00:00Z"]}),  # noqa: DTZ001
        ({"submitted<": date(2026, 3, 1)}, {"submitted<": ["2026-03-01"]}),
    ],
)  # fmt: skip
def test_filters_are_sent_as_the_language_writes_them(
    server: SmallServer, client: Client, filters: Filters | None, sent: dict[str, list[str]]
) -> None:
    server.on("GET jobs", {"jobs": [], "next": None})
    assert list(client.find_jobs(filters, limit=2)) == []
    assert server.asked[-1].query == sent | {"limit": ["2"]}


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (["queue=nightly"], "not a list; filters_in() makes them of a list."),
        (
            {"queue": None},
            "the filter queue takes text, a number, yes or no, a time, or a list of them, not a NoneType.",
        ),
        ({"queue": {"a": 1}}, "not a dict."),
        ({"limit": 3}, "limit is no filter"),
        ("queue=a&fields=id", "fields is no filter"),
    ],
)
def test_what_is_no_filter_is_told_before_anything_is_sent(client: Client, filters: Any, said: str) -> None:
    for find in (client.find_jobs, client.find_runs, client.find_decisions, client.failure_days):
        with pytest.raises(TackError, match=re.escape(said)):
            find(filters)


def test_text_is_read_as_one_word_or_an_address() -> None:
    assert filters_in("queue=nightly&state=failed") == {"queue": ["nightly"], "state": ["failed"]}
    assert filters_in("jobSet=R&D") == {"jobSet": ["R&D"]}


def test_no_more_pages_are_asked_for_than_the_limit_needs(server: SmallServer, client: Client) -> None:
    server.on("GET jobs", {"jobs": [job_view("a"), job_view("b")], "next": "from-b"})
    assert [job.job_id for job in client.jobs(limit=2)] == ["a", "b"]
    assert [asked.query["limit"] for asked in server.asked] == [["2"]]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, NotSignedIn),
        (403, NotPermitted),
        (404, NotFound),
        (409, Conflict),
        (503, Busy),
        (429, Busy),
    ],
)
def test_a_refusal_is_an_exception_with_its_sentence_code_and_problems(
    server: SmallServer, client: Client, status: int, kind: type[Refused]
) -> None:
    problem = {"path": "rules[0].onCategory", "message": "Name it.", "line": 7}
    server.on("GET queues", refusal(status, "why_not", "Not so.", [problem]))
    with pytest.raises(kind, match=r"Not so\.") as refused:
        client.queues()
    assert type(refused.value) is kind
    assert (refused.value.status, refused.value.code) == (status, "why_not")
    assert refused.value.problems == (Problem(path="rules[0].onCategory", message="Name it.", line=7),)


def test_busy_says_when_to_come_back(server: SmallServer, client: Client) -> None:
    server.on("GET queues", refusal(503, "unavailable", "Not now.", Retry_After="7"))
    with pytest.raises(Busy) as busy:
        client.queues()
    assert busy.value.retry_after_seconds == 7.0


@pytest.mark.parametrize(
    "answer",
    [
        Answer(pieces=("<html>hello</html>",), media="text/html"),
        Answer(status=502, pieces=("Bad gateway",), media="text/plain"),
        Answer(status=404, json={"detail": "no"}),
        Answer(status=302, headers={"Location": "/sign-in"}),
        Answer(json={"things": []}),
        Answer(json={"queues": [{"priorityFactor": 1.0}]}),
        Answer(json={"queues": [{"name": 3}]}),
        Answer(json={"queues": [{"name": "a", "labels": []}, []]}),
        Answer(json=[]),
        Answer(),
    ],
)
def test_an_answer_that_is_not_tacks_is_told_as_such(
    server: SmallServer, client: Client, answer: Answer
) -> None:
    server.on("GET queues", answer)
    with pytest.raises(UnexpectedAnswer, match="Is the address right"):
        client.queues()


def test_where_nothing_answers_the_sentence_has_the_fix() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Client(url) as client, pytest.raises(NothingAnswers) as error:
            client.queues()
    assert (
        str(error.value)
        == f"Nothing answers at {url}. Start Tack with ./tack up, or name another with --url."
    )


def test_a_server_that_does_not_answer_in_time_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(url, timeout_seconds=0.05) as client,
            pytest.raises(TooSlow, match=r"within 0\.05 seconds"),
        ):
            client.queues()


def test_a_connection_cut_in_the_middle_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with Client(url, timeout_seconds=5) as client:
            # The kernel takes the connection; closing the listener before anybody accepts it resets it.
            server.close()
            with pytest.raises(TackError):
                client.queues()


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.on("GET queues", {"queues": []})
    with Client(server.url, token=TOKEN) as client:
        assert client.queues() == ()


def test_a_policy_travels_as_the_text_it_was_written_in(server: SmallServer, client: Client) -> None:
    server.on("POST retry-policies", policy_view(), status=201)
    assert client.create_retry_policy(POLICY_TEXT, note="why", force=True).name == "oom-grow"
    asked = server.asked[-1]
    assert asked.text == POLICY_TEXT
    assert asked.headers["Content-Type"] == "application/yaml; charset=utf-8"
    assert asked.query == {"note": ["why"], "force": ["true"]}


def test_an_edit_names_the_version_it_is_based_on(server: SmallServer, client: Client) -> None:
    server.on("PUT retry-policies/oom-grow", policy_view(version=4))
    assert client.update_retry_policy("oom-grow", {"name": "oom-grow"}, based_on=3).version == 4
    assert server.asked[-1].headers["If-Match"] == '"3"'
    assert server.asked[-1].body == {"name": "oom-grow"}


def test_deleting_what_is_not_there_is_no_error(client: Client) -> None:
    client.delete_retry_policy("gone")
    client.delete_queue("gone")


def test_a_cancellation_sorts_jobs_by_what_was_done(server: SmallServer, client: Client) -> None:
    server.on("POST jobs/cancel", {"cancelled": ["a"], "cancelling": ["b"], "unchanged": ["c"]})
    done = client.cancel_jobs(["a", "b", "c"], reason="enough")
    assert (done.cancelled, done.cancelling, done.unchanged) == (("a",), ("b",), ("c",))
    assert server.asked[-1].body == {"jobIds": ["a", "b", "c"], "reason": "enough"}


def test_the_output_of_a_run_is_text_as_it_is(server: SmallServer, client: Client) -> None:
    server.on(
        "GET runs/r1/output", Answer(pieces=("größer ", "than 64Mi\n"), media="text/plain; charset=utf-8")
    )
    assert client.run_output("r1") == "größer than 64Mi\n"


def test_a_sign_in_link_carries_the_address_that_was_asked(server: SmallServer, client: Client) -> None:
    server.on("POST sign-in-links", {"path": "/sign-in/abc", "url": "http://inside/sign-in/abc"}, status=201)
    assert client.sign_in_link() == f"{server.url}/sign-in/abc"


def test_lists_of_every_kind_are_read(server: SmallServer, client: Client) -> None:
    server.on(
        "GET me", {"name": "alice", "role": "submitter", "permissions": ["submit_any_jobs"], "groups": []}
    )
    server.on("GET retry-policies/oom-grow/versions", {"versions": [policy_view()]})
    server.on(
        "GET executors", {"executors": [{"name": "local", "pool": "default", "nodes": [{"name": "local-1"}]}]}
    )
    server.on("GET runs", lambda asked: Answer(json={"runs": [run_view(jobId=asked.query["job"][0])]}))
    assert client.me().permissions == ("submit_any_jobs",)
    assert [version.version for version in client.retry_policy_versions("oom-grow")] == [1]
    assert client.executors()[0].nodes == (Node(name="local-1"),)
    assert [run.job_id for run in client.runs(job_id="j")] == ["j"]


def test_what_was_asked_is_asked_once(server: SmallServer, client: Client) -> None:
    def slip(_: Asked) -> Answer:
        return refusal(500, "internal", "Tack failed to answer.")

    server.on("POST queues", slip)
    with pytest.raises(Refused):
        client.create_queue({"name": "nightly"})
    assert len(server.asked) == 1


def test_neither_client_nor_command_line_load_django_celery_or_the_scheduler() -> None:
    program = (
        "import sys, lookout.client, lookout.cli.main\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('django', 'celery', 'psycopg', 'scheduler')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
