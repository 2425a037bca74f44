"""Who asks for too much is told how to ask for less: in words that are accepted."""

import re
from collections.abc import Callable

import pytest

from scheduler.filters import (
    DECISIONS,
    JOBS,
    RUNS,
    Filter,
    Grammar,
    decision_filter_of,
    job_filter_of,
    order_of,
    run_filter_of,
)
from scheduler.filters.orders import NEWEST_JOBS
from scheduler.queries import chosen, failed_runs, groups
from scheduler.queries.listings import NARROW

READ: dict[str, Callable[[str], Filter]] = {
    "jobs": job_filter_of,
    "runs": run_filter_of,
    "decisions": decision_filter_of,
}
NAMED = {"job set": "jobSet"}


@pytest.mark.parametrize(
    ("grammar", "sentence"),
    [*((grammar, NARROW[grammar.things]) for grammar in (JOBS, RUNS, DECISIONS)), (JOBS, chosen.NARROW)],
)
def test_what_is_advised_is_accepted(grammar: Grammar, sentence: str) -> None:
    names = re.findall(r"\ban? ([a-z]+(?: set)?)(?=,)", sentence)
    (example,) = re.findall(r"[a-zA-Z]+>=-1d", sentence)
    assert len(names) >= 2
    assert all(grammar.field(NAMED.get(name, name)) for name in names)
    assert READ[grammar.things](example)
    for sort in re.findall(r"sort=(-[a-z]+)", sentence):
        assert order_of(sort, grammar.things, NEWEST_JOBS)


@pytest.mark.parametrize(
    ("grammar", "sentence", "names"),
    [
        (JOBS, groups.NARROW, ("queue", "submitted", "finished")),
        (RUNS, failed_runs.NARROW, ("queue", "category", "node")),
    ],
)
def test_filters_that_are_named_are_there(grammar: Grammar, sentence: str, names: tuple[str, ...]) -> None:
    assert all(name in sentence and grammar.field(name) for name in names)
