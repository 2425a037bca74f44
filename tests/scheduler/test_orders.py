"""Each order that is listed is that of its field, both ways."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.filters import DecisionFilter, JobFilter, Order, RunFilter, order_of
from scheduler.filters.orders import NEWEST_JOBS, SORTS
from scheduler.queries.listings import list_decisions, list_jobs, list_runs
from tests.scheduler.history_rows import PlainJob, PlainRun, all_runs, make_history
from tests.scheduler.plain_orders import in_order

pytestmark = pytest.mark.django_db

LISTS: dict[str, Callable[[Order], Any]] = {
    "jobs": lambda order: list_jobs(JobFilter(), order),
    "runs": lambda order: list_runs(RunFilter(), order),
    "decisions": lambda order: list_decisions(DecisionFilter(), order),
}


def _rows(things: str) -> list[PlainJob] | list[PlainRun]:
    history = make_history()
    if things == "jobs":
        return history
    return [run for run in all_runs(history) if things == "runs" or run.values["verdict"]]


@pytest.mark.parametrize("things", SORTS)
def test_each_order_is_that_of_its_field(things: str) -> None:
    rows, orders = _rows(things), set()
    for name in SORTS[things]:
        for sort in (name, f"-{name}"):
            order = order_of(sort, things, NEWEST_JOBS)
            found = tuple(str(row.pk) for row in LISTS[things](order).page(limit=100)[0])
            assert found == tuple(str(each.row.pk) for each in in_order(rows, order, things)), sort
            orders.add(found)
    assert len(orders) == 2 * len(SORTS[things]), "two orders cannot be told apart by these rows"


@pytest.mark.parametrize("sort", ["queue,-state", "-finished,owner", "-memory,runs", "priority,-submitted"])
def test_the_second_key_orders_what_is_equal_in_the_first(sort: str) -> None:
    rows, order = make_history(), order_of(sort, "jobs", NEWEST_JOBS)
    found = [row.pk for row in LISTS["jobs"](order).page(limit=100)[0]]
    assert found == [each.row.pk for each in in_order(rows, order, "jobs")]
