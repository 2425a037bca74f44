"""Heat maps of nodes: the worst by category and the rest as one, whatever of it is rolled up."""

import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.filters import RunFilter, run_filter_of
from scheduler.models import Run
from scheduler.queries.heat_map import Across, HeatMap, HeatRow, heat_map
from scheduler.queries.rollups import Span
from scheduler.rollups import HOUR
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_run
from tests.scheduler.pasts import CATEGORIES, close_hours, this_hour

pytestmark = pytest.mark.django_db

HOURS_AGO = (75.0, 74.5, 51.2, 49.0, 26.4, 25.0, 5.0, 0.3)
PLACES = (
    ("default", "local", "node-1"),
    ("default", "local", "node-2"),
    ("gpu", "local", "node-2"),
    ("gpu", "other", "node-2"),
    ("gpu", "other", "node-3"),
    ("default", "other", "node-4"),
)
"""Node 2 of an executor changes its pool, and another executor has one of that name."""


@pytest.fixture(params=[0, 3, 1_000], ids=["nothing closed", "some hours closed", "all closed"])
def past(request: Any) -> None:
    """Four days of failures on few nodes, some reported late, of which none, some or all are rolled up."""
    chance = random.Random(3)  # noqa: S311 - a past is no secret
    executors = {name: make_executor(name, nodes=0) for name in ("local", "other")}
    job = make_job()
    runs = []
    for number in range(1, 120):
        pool, executor, node = chance.choice(PLACES)
        at = this_hour() - timedelta(hours=chance.choice(HOURS_AGO))
        runs.append(
            Run(
                job=job, job_submitted_at=job.submitted_at, queue_id=job.queue_id, number=number, executor=executors[executor], pool=pool, node=node,
                node_id=node, state=RunState.FAILED, category=chance.choice(CATEGORIES), leased_at=at, recorded_at=at,
                ended_at=at - chance.choice((0, 30)) * HOUR, core_seconds=chance.randrange(1, 100),
            )
        )  # fmt: skip
    Run.objects.bulk_create(runs)
    close_hours(request.param)


def spans() -> list[Span]:
    """Open ones; and such as begin and end within a day, or within the same."""
    now = this_hour()
    return [
        Span(),
        Span(since=now - 74.7 * HOUR),
        Span(since=now - 60 * HOUR, until=now - 25.5 * HOUR),
        Span(since=now - 51.3 * HOUR, until=now - 51 * HOUR),
        Span(until=now - 26 * HOUR),
        Span(since=now + HOUR),
    ]


def expected(runs: list[Run], span: Span, across: Across, limit: int) -> tuple[list[Any], Any]:
    """Rows and the rest, counted in plain Python."""
    lines: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if _is_in(span, run.recorded_at):
            key = (run.node, run.executor_id) if across is Across.NODE else (run.pool, "")
            lines[key].append(run)
    worst = sorted(lines, key=lambda key: (-len(lines[key]), key))
    rest = [run for key in worst[limit:] for run in lines[key]]
    rows = [_told(*key, lines[key]) for key in worst[:limit]]
    return rows, _told(str(len(worst) - limit), "", rest) if rest else None


def _is_in(span: Span, at: datetime | None) -> bool:
    assert at is not None
    return (span.since is None or span.since <= at) and (span.until is None or at < span.until)


def _told(name: str, executor: str, runs: list[Run]) -> tuple[Any, ...]:
    seconds = sum(run.core_seconds for run in runs)
    return name, executor, len(runs), seconds, Counter(run.category for run in runs)


def found(told: HeatMap) -> tuple[list[Any], Any]:
    return [_cells(row) for row in told.rows], told.others and _cells(told.others)


def _cells(row: HeatRow) -> tuple[Any, ...]:
    return row.name, row.executor, row.failures, row.core_seconds, row.by_category


@pytest.mark.parametrize("across", [Across.NODE, Across.POOL])
@pytest.mark.usefixtures("past")
def test_the_worst_and_the_rest_are_what_there_is_by_category(across: Across) -> None:
    for asked, fields in (("", {}), ("category=oom", {"category": "oom"})):
        runs = list(Run.objects.filter(**fields))
        for span in spans():
            for limit in (1, 3, 5):
                told = heat_map(run_filter_of(asked), across, span, limit=limit)
                assert found(told) == expected(runs, span, across, limit), (asked, span, limit)


def test_the_rest_names_no_category_that_is_shown_wholly_and_nothing_negative() -> None:
    at = this_hour() - 30 * HOUR
    for node, category, core_seconds in [("a", "oom", 0.1), ("a", "oom", 0.2), ("a", "oom", 0.3), ("b", "disk", 0.7)]:  # fmt: skip
        make_run(
            make_job(), state=RunState.FAILED, node=node, category=category, core_seconds=core_seconds,
            recorded_at=at, ended_at=at,
        )  # fmt: skip
        at += HOUR / 2
    close_hours()
    rest = heat_map(RunFilter(), Across.NODE, Span(), limit=1).others
    assert rest is not None and (rest.failures, rest.by_category) == (1, {"disk": 1})
    assert rest.core_seconds == pytest.approx(0.7)
