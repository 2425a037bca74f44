"""Exports over REST: exactly what the list of the same filter has, in stretches, to be gone on with anywhere."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from lookout.api.closing import close_now
from lookout.api.v1 import exports
from lookout.api.v1.exports import ServerStops
from scheduler.actors import Role
from scheduler.filters.orders import SORTS
from scheduler.models import Job
from scheduler.states import JobState, RunState
from tests.api.caller import Caller, caller
from tests.api.deciding import decide
from tests.factories import make_job, make_run
from tests.fuzz.effort import tried
from tests.scheduler.history_rows import PlainJob, make_history

pytestmark = pytest.mark.django_db

KEYS = {"jobs": "jobId", "runs": "runId", "decisions": "runId"}


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> list[PlainJob]:
    """So few rows make several stretches."""
    monkeypatch.setattr(exports, "STRETCH", 4)
    return make_history()


def text_of(rita: Caller, path: str, **query: Any) -> str:
    response = rita.raw("GET", f"v1/{path}/export", query=query)
    assert response.status_code == 200
    return "".join(part.decode() for part in response)


def give_up(response: Any) -> None:
    """What a server does with an answer nobody reads any more, without the end of the request."""
    for close in response._resource_closers:
        close()


def lines_of(rita: Caller, path: str, **query: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_of(rita, path, **query).splitlines()]


def as_line(listed: dict[str, Any]) -> str:
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":")) + "\n"


def listed(rita: Caller, path: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rita.get(f"v1/{path}", {"limit": "1000", **query}).body[path]
    return found


FILTERS = st.sampled_from(
    [{}, {"queue": "nightly"}, {"state": ["failed", "queued"]}, {"category.any!": "oom"}, {"exitCode.last?": "yes"},
     {"jobSet*": "%"}, {"owner": "nobody"}]
)  # fmt: skip


def test_an_export_of_jobs_is_the_list(rita: Caller, history: list[PlainJob]) -> None:
    @tried(25)
    @given(wanted=FILTERS, sort=st.sampled_from(["", *SORTS["jobs"], "-finished,queue", "owner,-state"]))
    def holds(wanted: dict[str, Any], sort: str) -> None:
        each = [as_line(job) for job in listed(rita, "jobs", sort=sort, **wanted)]
        assert text_of(rita, "jobs", sort=sort, **wanted) == "".join(each)

    holds()


@pytest.mark.parametrize("path", ["runs", "decisions"])
def test_an_export_of_runs_or_decisions_is_the_list(rita: Caller, history: list[PlainJob], path: str) -> None:
    expected = listed(rita, path)
    assert text_of(rita, path) == "".join(map(as_line, expected))
    assert len(expected) > 4


def test_a_job_is_exported_as_it_is_listed_whatever_became_of_it(rita: Caller) -> None:
    for state in JobState:
        make_job(
            state=state, client_id=str(state), annotations={"ü/b": 'a "b": c', "a": "\n"}, labels={"x": "y"}
        )
    for end in RunState:
        make_run(make_job(resources={"nvidia.com/gpu": 2}), state=end)
        later = make_run(make_job(avoided_nodes=["a", "b"]), state=RunState.FAILED).job
        make_run(later, state=end)
    returned = make_run(make_job(), state=RunState.LEASE_RETURNED, exit_code=0).job
    Job.objects.filter(id=returned.id).update(state=JobState.FAILED, ended_at=returned.submitted_at)
    on_the_second = datetime(2026, 11, 29, 10, 0, 0, tzinfo=UTC)
    Job.objects.filter(id=returned.id).update(submitted_at=on_the_second)
    make_job(rejected_because="\x1b[31m\u2028", cancel_reason="é")
    expected = listed(rita, "jobs")
    assert text_of(rita, "jobs") == "".join(map(as_line, expected))
    assert {str(job["lastFailure"]) for job in expected} >= {
        "None",
        "{'category': 'internal', 'subcategory': 'max-runs-exceeded'}",
        "{'category': 'internal', 'subcategory': 'job-rejected'}",
    }


@pytest.mark.parametrize("path", ["jobs", "runs", "decisions"])
def test_a_csv_export_has_every_field_in_a_column(rita: Caller, history: list[PlainJob], path: str) -> None:
    rows = list(csv.DictReader(io.StringIO(text_of(rita, path, format="csv"))))
    expected = listed(rita, path)
    assert [row[KEYS[path]] for row in rows] == [each[KEYS[path]] for each in expected]
    for row, each in zip(rows, expected, strict=True):
        top = {name.partition(".")[0] for name in row}
        assert top == set(each)
        assert {name: value for name, value in row.items() if "." not in name} == {
            name: _cell(each[name]) for name in row if "." not in name
        }


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "" if value is None else str(value)


def test_nested_fields_have_columns_by_their_paths(rita: Caller, history: list[PlainJob]) -> None:
    rows = list(
        csv.DictReader(io.StringIO(text_of(rita, "jobs", format="csv", fields="jobId,lastRun,lastFailure")))
    )
    assert list(rows[0]) == [
        "jobId", "lastFailure.category", "lastFailure.subcategory", "lastRun.runId", "lastRun.state",
        "lastRun.executor", "lastRun.node", "lastRun.pool", "lastRun.startedAt", "lastRun.endedAt", "lastRun.exitCode",
    ]  # fmt: skip
    assert {row["lastRun.node"] for row in rows} >= {"gpu-07", "n%1", ""}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_is_gone_on_with_after_any_row(rita: Caller, history: list[PlainJob], form: str) -> None:
    query = {"format": form, "sort": "-finished", "cursors": "true", "fields": "jobId,endedAt"}
    whole = text_of(rita, "jobs", **query)
    head = form == "csv"
    lines = whole.splitlines(keepends=True)
    for number in (1 + head, 5 + head, 14 + head):
        last = lines[number - 1]
        cursor = last.strip().rpartition(",")[2] if head else json.loads(last)["cursor"]
        assert "".join(lines[:number]) + text_of(rita, "jobs", **query, cursor=cursor) == whole


def test_an_export_may_be_limited(rita: Caller, history: list[PlainJob]) -> None:
    everything = lines_of(rita, "jobs")
    for limit in (1, 4, 5, 14, 100):
        assert lines_of(rita, "jobs", limit=str(limit)) == everything[:limit]
    assert text_of(rita, "jobs", limit="0") == ""


@pytest.mark.parametrize(
    ("query", "field"),
    [("colour=red", "colour"), ("format=xml", "format"), ("fields=colour", "fields"), ("sort=colour", "sort"),
     ("cursor=x", "cursor"), ("node=a", "node"), ("limit=-1", "limit")],
)  # fmt: skip
def test_what_cannot_be_exported_is_refused_before_it_begins(rita: Caller, query: str, field: str) -> None:
    answer = rita.get(f"v1/jobs/export?{query}")
    assert (answer.status, answer.paths) == (400, [field])


def test_a_stretch_takes_the_same_queries_wherever_it_is(rita: Caller, history: list[PlainJob]) -> None:
    with CaptureQueriesContext(connection) as one:
        lines_of(rita, "jobs", limit="4")
    with CaptureQueriesContext(connection) as three:
        lines_of(rita, "jobs", limit="12")
    with CaptureQueriesContext(connection) as none:
        lines_of(rita, "jobs", limit="0")
    assert len(three) - len(none) == 3 * (len(one) - len(none))


def test_only_so_many_exports_are_read_at_once(rita: Caller, history: list[PlainJob]) -> None:
    opened = [rita.raw("GET", "v1/jobs/export") for _ in range(exports.MOST_EXPORTS)]
    refused = rita.get("v1/jobs/export")
    assert (refused.status, refused.error["code"]) == (503, "unavailable")
    for response in opened:
        give_up(response)
    assert lines_of(rita, "jobs")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", KEYS)
def test_between_two_stretches_nothing_of_the_database_is_held(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(exports, "STRETCH", 1)
    for _ in range(2):
        decide(make_run(make_job(), state=RunState.FAILED))
    response = caller("rita", Role.READER).raw("GET", f"v1/{path}/export")
    held = [connection.connection is not None for _ in response]
    assert held == [False, False]


@pytest.fixture
def _closing() -> Iterator[None]:
    yield
    close_now(closing=False)


@pytest.mark.usefixtures("_closing")
def test_an_export_is_broken_off_rather_than_cut_short(rita: Caller, history: list[PlainJob]) -> None:
    response = rita.raw("GET", "v1/jobs/export")
    parts = iter(response)
    next(parts)
    close_now()
    with pytest.raises(ServerStops):
        next(parts)
    give_up(response)


def test_nobody_reads_without_signing_in(history: list[PlainJob]) -> None:
    for path in KEYS:
        assert Caller().get(f"v1/{path}/export").status == 401
