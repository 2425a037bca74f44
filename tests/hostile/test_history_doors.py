"""No door to the history takes the database for longer than it may, or is gone through without end."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from scheduler.actors import Role
from scheduler.models import RunOutput
from scheduler.states import RunState
from tests.api.caller import Caller, caller
from tests.factories import make_job, make_run
from tests.hostile.history_doors import DOORS, LEADING, Ask
from tests.pages.conftest import signed_in
from tests.scheduler.history_rows import make_history

pytestmark = pytest.mark.django_db

HISTORY = re.compile(
    r"scheduler_(job|jobannotation|jobset|jobtotal|run|runerror|decision|\w*hour|\w*day|\w*daytotal)\b"
)


@pytest.fixture
def rita() -> Caller:
    return caller("rita", Role.READER)


@contextmanager
def limits_of_statements() -> Iterator[list[tuple[str, str]]]:
    """What each statement about the history that is run within may take, and the statement."""
    found: list[tuple[str, str]] = []

    def noted(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if HISTORY.search(sql):
            (limit,) = connection.connection.execute("SHOW statement_timeout").fetchone()
            found.append((limit, sql))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(noted):
        yield found


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
def test_all_that_is_read_of_the_history_has_a_limit_of_time(rita: Caller, ask: Ask) -> None:
    with limits_of_statements() as found:
        assert ask(rita).status_code == 200
    assert found
    assert [sql for limit, sql in found if limit != "10s"] == []


@pytest.mark.parametrize(
    "path",
    [
        f"jobs?{LEADING}",
        "jobs?sort=owner",
        f"cancel-jobs?{LEADING}",
        "preempt-jobs?queue=nightly",
        "find?q=0123456789abcdef",
    ],
)
def test_so_has_all_that_a_page_reads_of_it(path: str) -> None:
    make_history()
    browser = signed_in("olga", Role.OPERATOR)
    with limits_of_statements() as found:
        assert browser.get(f"/{path}").status_code in (200, 302)
    assert found
    assert [sql for limit, sql in found if limit != "10s"] == []


def test_so_has_looking_for_jobs_of_which_something_is_asked() -> None:
    make_job(annotations={"example.com/a": "x_1"}, job_set="a")
    olga = caller("olga", Role.OPERATOR)
    with limits_of_statements() as found:
        assert olga.post("v1/jobs/reprioritize", {"filter": LEADING, "priority": 7}).status == 200
        assert len(olga.post("v1/jobs/cancel", {"filter": LEADING}).body["cancelled"]) == 1
    leads = [limit for limit, sql in found if "jobannotation" in sql and '"scheduler_job"' not in sql]
    assert set(leads) == {"10s", "2s"}


def test_every_door_counts_how_often_it_is_gone_through(rita: Caller, settings: Any) -> None:
    settings.TACK_READS_PER_MINUTE = 1
    assert rita.get("v1/decisions").status == 200
    assert {name: ask(rita).status_code for name, ask in DOORS.items()} == dict.fromkeys(DOORS, 429)
    assert caller("olga", Role.OPERATOR).get("v1/jobs").status == 200


def test_single_things_and_events_are_counted_for_themselves(rita: Caller, settings: Any) -> None:
    settings.TACK_READS_PER_MINUTE = 1
    run = make_run(make_job(), state=RunState.FAILED)
    RunOutput.objects.create(run=run, head=b"done")
    single = [f"jobs/{run.job_id}", f"runs/{run.id}", f"runs/{run.id}/output"]
    assert [rita.get(f"v1/{path}").status for path in [*single * 3, single[0]]] == [200] * 10
    assert [rita.get(f"v1/{path}").status for path in single] == [429] * 3
    events = {"queue": "nightly", "jobSet": "set"}
    assert [rita.get("v1/events", events).status for _ in range(11)] == [200] * 10 + [429]
    assert [rita.get("v1/jobs").status for _ in range(2)] == [200, 429]
