"""What a program may ask of the history: nonsense is refused by name, soon, whatever its size or letters."""

import pytest
from django.db import connection

from scheduler.actors import Role
from scheduler.filters import JobFilter
from scheduler.queries.listings import list_jobs
from tests.api.caller import Caller, caller
from tests.factories import make_job
from tests.hostile.soon import soon

pytestmark = pytest.mark.django_db

MANY = "&".join(f"annotation.{number}*=%25_{number}" for number in range(200))
FULL = "&".join(f"annotation.k{number}!*=%25_%25_%25" for number in range(40))


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


NONSENSE = [
    ("colour=red", "colour"),
    ("queue[]=a", "queue[]"),
    ("queue=%00", "queue"),
    ("queue=" + "x" * 1_025, "queue"),
    ("category%00=a", "category\x00"),
    ("\u202equeue=a", "\u202equeue"),
    ("queue>=5", "queue>"),
]


@pytest.mark.parametrize("path", ["jobs", "runs", "decisions", "jobs/export", "runs/export"])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        *NONSENSE,
        ("sort=" + "queue," * 30, "sort"),
        ("cursor=%F0%9F%92%A9", "cursor"),
        ("cursor=" + "A" * 15_000, "cursor"),
        ("fields=%27;DROP", "fields"),
        (MANY, ""),
    ],
)
def test_nonsense_is_refused_by_name_and_soon(rita: Caller, path: str, query: str, field: str) -> None:
    with soon():
        answer = rita.get(f"v1/{path}?{query}")
    assert answer.status == 400
    expected = "annotation.0*" if query == MANY and not path.startswith("jobs") else field
    assert expected in answer.paths


@pytest.mark.parametrize(
    "path",
    ["jobs/groups?by=queue&", "failures/heatmap?", "failures/groups?", "failures/days?", "stats/retries?"],
)
def test_so_is_nonsense_that_statistics_are_asked(rita: Caller, path: str) -> None:
    too_many = "&".join(f"queue{sign}={number}" for number in range(200) for sign in ("", "!"))
    for query, field in (
        *NONSENSE,
        ("cursor=x", "cursor"),
        ("limit=0&limit=1", "limit"),
        (too_many, "queue"),
    ):
        with soon():
            answer = rita.get(f"v1/{path}{query}")
        assert (answer.status, field in answer.paths) == (400, True), query
    with soon():
        answer = rita.get(f"v1/{path}{MANY}")
    assert answer.status == 400


def test_as_much_as_may_be_asked_is_answered_soon(rita: Caller) -> None:
    make_job(annotations={f"k{number}": "%_" for number in range(40)})
    with soon():
        answer = rita.get(f"v1/jobs?{FULL}&count=true")
    assert answer.status == 200
    assert len(answer.body["jobs"]) == 1


def test_a_cursor_of_another_list_or_with_a_letter_changed_is_refused(rita: Caller) -> None:
    for _ in range(3):
        make_job()
    cursor = rita.get("v1/jobs?limit=1").body["next"]
    assert rita.get(f"v1/jobs?limit=2&cursor={cursor}").status == 200
    for query in (f"runs?cursor={cursor}", f"jobs?queue=a&cursor={cursor}", f"jobs?sort=id&cursor={cursor}",
                  f"jobs?cursor={cursor[:-2]}", f"jobs?cursor=x{cursor}"):  # fmt: skip
        assert rita.get(f"v1/{query}").paths == ["cursor"]


def test_a_question_that_takes_too_long_says_how_to_narrow_it(
    rita: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object, **__: object) -> object:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '50ms'")
            cursor.execute("SELECT pg_sleep(10)")
        return list_jobs(JobFilter())

    monkeypatch.setattr("scheduler.queries.jobs.list_jobs", slow)
    with soon():
        answer = rita.get("v1/jobs")
    assert (answer.status, answer.error["code"]) == (400, "too_much_asked")
    assert "Narrow it: name a queue, a state, or a time such as submitted>=-1d" in answer.error["message"]


def test_too_many_questions_are_told_when_to_come_back(rita: Caller, settings: object) -> None:
    settings.TACK_READS_PER_MINUTE = 2  # type: ignore[attr-defined]
    other = caller("olga", Role.OPERATOR)
    assert [rita.get("v1/decisions").status for _ in range(3)] == [200, 200, 429]
    refused = rita.get("v1/jobs")
    assert (refused.status, refused.error["code"]) == (429, "too_many_requests")
    assert int(refused.headers["Retry-After"]) <= 61
    assert other.get("v1/jobs").status == 200
