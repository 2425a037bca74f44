"""`tack get jobs`, `get runs`, `get failures`: filters as in the address, for people and for programs."""

import json
import sys
from typing import Any

import click
import pytest
import yaml

from lookout.cli.filters import JOB_SORTS, JOB_STATES, RUN_SORTS, RUN_STATES
from scheduler.filters.orders import SORTS
from scheduler.states import JobState, RunState
from tests.cli.answers import JOB_ID, failed_run, job_view, run_view
from tests.cli.conftest import Tack
from tests.cli.small_server import Answer, SmallServer, refusal


def test_get_jobs_sends_every_filter(server: SmallServer, tack: Tack) -> None:
    server.on("GET jobs", {"jobs": [], "next": None})
    filters = {
        "--queue": ("queue", "nightly"),
        "--state": ("state", "failed"),
        "--job-set": ("jobSet", "report/2026"),
        "--category-any": ("category.any", "oom"),
        "--category-last": ("category.last", "oom"),
        "--text": ("text", "night"),
    }
    said = tack("get", "jobs", *(word for flag, (_, value) in filters.items() for word in (flag, value)))
    assert (said.code, said.out, said.err) == (0, "", "No jobs.\n")
    assert server.asked[-1].query == {name: [value] for name, value in filters.values()} | {"limit": ["51"]}


def test_get_jobs_prints_a_table_that_programs_can_split(server: SmallServer, tack: Tack) -> None:
    long_set = "a-job-set-with-a-name-that-is-longer-than-any-terminal-is-wide/" * 3
    queued = job_view("b", state="queued", lastFailure=None, runCount=0, jobSetId=long_set)
    server.on("GET jobs", {"jobs": [job_view(), queued], "next": None})
    heading, first, second = tack("get", "jobs").out.splitlines()
    assert heading.split() == ["JOB", "QUEUE", "JOB", "SET", "STATE", "RUNS", "CATEGORY", "AGE"]
    assert first.split()[:6] == [JOB_ID, "nightly", "report", "succeeded", "2", "oom"]
    assert second.split()[:6] == ["b", "nightly", long_set, "queued", "0", "-"]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_get_jobs_prints_what_the_api_answers(server: SmallServer, tack: Tack, form: str) -> None:
    server.on("GET jobs", {"jobs": [job_view()], "next": None})
    said = tack("get", "jobs", "-o", form)
    read: Any = json.loads(said.out) if form == "json" else yaml.safe_load(said.out)
    assert read == {"jobs": [job_view()]}


def test_get_jobs_says_when_there_are_more(server: SmallServer, tack: Tack) -> None:
    server.on("GET jobs", {"jobs": [job_view("a"), job_view("b")], "next": "b"})
    said = tack("get", "jobs", "--limit", "1", "-o", "json")
    assert [job["jobId"] for job in json.loads(said.out)["jobs"]] == ["a"]
    assert said.err == "There are more than this one: --limit shows more, filters fewer.\n"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("limit=3", "limit is no filter. Use --limit 3."),
        ("sort=queue", "sort is no filter. Use --sort queue."),
        ("fields=jobId", "fields is no filter. All fields are there with -o json."),
        ("queue=a&count=true", "count is no filter. It is a parameter of lists in the REST API"),
    ],
)
def test_what_is_no_filter_is_a_usage_error_with_its_option(tack: Tack, word: str, said: str) -> None:
    for things in ("jobs", "runs", "failures"):
        refused = tack("get", things, word)
        assert (refused.code, said in " ".join(refused.err.split())) == (2, True)


def test_several_filters_may_stand_in_one_word(server: SmallServer, tack: Tack) -> None:
    server.on("GET jobs", {"jobs": [], "next": None})
    words = ("queue=nightly&retries>1&owner!=a%20b", "jobSet=R&D", "annotation.x=a%26state=b", "jobSet=50%")
    assert tack("get", "jobs", *words, "state=failed").code == 0
    assert server.asked[-1].query == {
        "queue": ["nightly"], "retries>1": [""], "owner!": ["a b"], "jobSet": ["R&D", "50%"],
        "annotation.x": ["a&state=b"], "state": ["failed"], "limit": ["51"],
    }  # fmt: skip


def test_runs_and_failures_have_options_for_what_is_asked_most(server: SmallServer, tack: Tack) -> None:
    server.on("GET runs", {"runs": [], "next": None})
    options = ("--queue", "a", "--job-set", "b", "--category", "oom", "--state", "failed", "queue=c")
    named = {"queue": ["c", "a"], "jobSet": ["b"], "category": ["oom"], "state": ["failed"], "limit": ["51"]}
    for things, more in (("runs", {}), ("failures", {"sort": ["-finished"]})):
        assert tack("get", things, *options).code == 0
        assert server.asked[-1].query == named | more
    assert tack("get", "failures", "--state", "running").code == 2


@pytest.mark.parametrize("things", ["jobs", "runs", "failures"])
def test_help_lists_the_keys_of_the_order_and_says_where_filters_stand(tack: Tack, things: str) -> None:
    told = tack("get", things, "--help").out
    assert "docs/reference/filters.md" in told
    keys = SORTS["jobs" if things == "jobs" else "runs"]
    assert ", ".join(keys).replace(" ", "") in "".join(told.split())


def test_words_of_the_command_line_are_those_of_the_scheduler() -> None:
    assert (tuple(JobState), tuple(RunState)) == (JOB_STATES, RUN_STATES)
    assert (SORTS["jobs"], SORTS["runs"]) == (JOB_SORTS, RUN_SORTS)


def test_an_unknown_state_is_a_usage_error_that_lists_them(tack: Tack) -> None:
    said = tack("get", "jobs", "--state", "done")
    assert said.code == 2
    assert "succeeded" in said.err


def test_filters_are_written_as_in_an_address(server: SmallServer, tack: Tack) -> None:
    server.on("GET jobs", {"jobs": [], "next": None})
    words = ["queue=a", "queue=b", "node.last!=gpu-07", "retries>1", "finished?=no", "annotation.x/y=1=2"]
    assert tack("get", "jobs", *words, "--queue", "c", "--sort", "queue,-submitted").code == 0
    assert server.asked[-1].query == {
        "queue": ["a", "b", "c"], "node.last!": ["gpu-07"], "retries>1": [""], "finished?": ["no"],
        "annotation.x/y": ["1=2"], "sort": ["queue,-submitted"], "limit": ["51"],
    }  # fmt: skip


def test_a_filter_that_means_false_is_sent(server: SmallServer, tack: Tack) -> None:
    server.on("GET runs", {"runs": [], "next": None})
    assert tack("get", "runs", "retryable=false").err == "No runs.\n"
    assert server.asked[-1].query == {"retryable": ["false"], "limit": ["51"]}


def test_get_runs_prints_a_table(server: SmallServer, tack: Tack) -> None:
    server.on("GET runs", {"runs": [failed_run(), run_view(2)], "next": None})
    heading, first, second = tack("get", "runs", f"job={JOB_ID}").out.splitlines()
    assert heading.split() == ["JOB", "RUN", "STATE", "NODE", "CATEGORY", "EXIT", "TOOK", "AGE"]
    assert first.split()[:7] == [JOB_ID, "1", "failed", "local-1", "oom", "137", "7s"]
    assert second.split()[1] == "2"


def test_get_failures_asks_for_runs_that_failed_the_last_first(server: SmallServer, tack: Tack) -> None:
    server.on("GET runs", {"runs": [failed_run(queue="nightly", jobSetId="report")], "next": None})
    heading, line = tack("get", "failures", "queue=nightly", "finished>=-12h").out.splitlines()
    assert heading.split() == [
        "AGE", "JOB", "RUN", "QUEUE", "JOB", "SET", "NODE", "CATEGORY", "EXIT", "VERDICT", "ERROR",
    ]  # fmt: skip
    assert line.split()[1:9] == [JOB_ID, "1", "nightly", "report", "local-1", "oom", "137", "retry"]
    assert "Container main failed" in line
    assert server.asked[-1].query == {
        "state": ["failed", "lease_expired"], "queue": ["nightly"], "finished>": ["-12h"], "sort": ["-finished"],
        "limit": ["51"],
    }  # fmt: skip


LONG_ERROR = f"Container main failed with exit code 7 because Error: {'no such file or folder ' * 9}/the/end"


def a_failure(**changes: Any) -> dict[str, Any]:
    """Of a lost disk, whose error has more to say than a line of a terminal can hold."""
    error = {"message": f"{LONG_ERROR}\nand more", "reason": "Error", "containers": []}
    return failed_run(category="internal", subcategory="lease-expired", error=error) | changes


def test_programs_get_the_first_line_of_an_error_whole(server: SmallServer, tack: Tack) -> None:
    server.on("GET runs", {"runs": [a_failure()], "next": None})
    assert tack("get", "failures").out.splitlines()[1].endswith(LONG_ERROR)


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (60, "AGE JOB CATEGORY"),
        (80, "AGE JOB RUN NODE CATEGORY EXIT"),
        (120, "AGE JOB RUN QUEUE JOB SET NODE CATEGORY EXIT VERDICT"),
    ],
)
def test_a_terminal_gets_the_columns_of_failures_it_has_room_for_with_the_error_beneath(
    server: SmallServer, tack: Tack, monkeypatch: pytest.MonkeyPatch, columns: int, headings: str
) -> None:
    server.on(
        "GET runs", {"runs": [a_failure(endedAt="2026-03-01T12:00:00Z"), a_failure(error=None)], "next": None}
    )
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    said = click.unstyle(tack("get", "failures").out).splitlines()
    assert " ".join(said[0].split()) == headings
    assert all("internal/lease-expired" in line for line in (said[1], said[3]))
    assert said[2].startswith("  no such file or folder") and said[2].endswith("…")
    assert [len(line) <= columns for line in said] == [True] * 4


@pytest.mark.parametrize(("word", "things"), [("jobs", "jobs"), ("runs", "runs"), ("failures", "runs")])
def test_lines_of_json_are_an_export_printed_as_it_comes(
    server: SmallServer, tack: Tack, word: str, things: str
) -> None:
    pieces = ('{"jobId":"a","owner":"\u202e"}\n{"job', 'Id":"b"}\n')
    server.on(f"GET {things}/export", Answer(pieces=pieces, media="application/x-ndjson"))
    said = tack("get", word, "queue=nightly", "-o", "jsonl")
    assert said.out == '{"jobId":"a","owner":"\\u202e"}\n{"jobId":"b"}\n'
    assert server.asked[-1].query["format"] == ["jsonl"]
    assert "limit" not in server.asked[-1].query


@pytest.mark.parametrize(("word", "things"), [("jobs", "jobs"), ("failures", "runs")])
def test_csv_is_printed_as_it_comes(server: SmallServer, tack: Tack, word: str, things: str) -> None:
    server.on(f"GET {things}/export", Answer(pieces=("jobId,owner\r\n", 'a,"b\nc"\r\n'), media="text/csv"))
    assert tack("get", word, "--limit", "7", "-o", "csv").out == 'jobId,owner\r\na,"b\nc"\r\n'
    assert server.asked[-1].query["limit"] == ["7"]


def test_a_filter_that_means_nothing_is_told_with_what_it_takes(server: SmallServer, tack: Tack) -> None:
    message = "state takes queued, leased; 'odd' is none."
    server.on("GET runs", refusal(400, "invalid", message, [{"path": "state", "message": message}]))
    said = tack("get", "runs", "state=odd")
    assert said.code == 1
    assert message in said.err


def test_problems_of_filters_name_their_field_once(server: SmallServer, tack: Tack) -> None:
    first, second = "There is no filter 'quue'. Did you mean queue?", "state takes = !=, not >."
    problems = [{"path": "quue", "message": first}, {"path": "state", "message": second}]
    server.on("GET jobs", refusal(400, "invalid", f"There are 2 problems. The first: {first}", problems))
    said = tack("get", "jobs", "quue=a", "state>b")
    assert said.err == f"Error: There are 2 problems. The first: {first}\n  {second}\n"
