"""Each field alone asks for its own value: none of them looks at another column."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db.models import Q

from scheduler.filters import (
    DECISIONS,
    JOBS,
    RUNS,
    Condition,
    DecisionFilter,
    FilterField,
    Grammar,
    JobFilter,
    Match,
    RunFilter,
    Scope,
    job_filter_of,
)
from scheduler.models import Decision, Job, Run
from scheduler.queries.leads import jobs_found
from scheduler.queries.meaning import decisions_where, jobs_where, runs_where
from tests.scheduler.history_rows import PlainJob, PlainRun, all_runs, make_history
from tests.scheduler.plain_filters import rows_of

pytestmark = pytest.mark.django_db


def _rows(grammar: Grammar) -> list[PlainJob] | list[PlainRun]:
    history = make_history()
    if grammar is JOBS:
        return history
    return [run for run in all_runs(history) if grammar is RUNS or run.values["verdict"]]


def _found(grammar: Grammar, condition: Condition) -> list[str]:
    asked = (condition,)
    if grammar is JOBS:
        return rows_of(Job.objects.filter(jobs_where(JobFilter(asked))))
    if grammar is RUNS:
        return rows_of(Run.objects.filter(runs_where(RunFilter(asked))))
    return rows_of(Decision.objects.filter(decisions_where(DecisionFilter(asked))))


def _fields(grammar: Grammar) -> Iterator[FilterField]:
    for field in grammar.fields.values():
        if field.scope is Scope.OWN and not (field.is_keyed or field.is_search):
            yield field


@pytest.mark.parametrize("grammar", [JOBS, RUNS, DECISIONS], ids=lambda grammar: grammar.things)
def test_each_field_finds_the_rows_with_its_value(grammar: Grammar) -> None:
    rows = _rows(grammar)
    for field in _fields(grammar):
        values = _values(rows, field.name)
        for value in values[:3]:
            equal = [each.row for each in rows if each.values[field.name] == value]
            match = Match.EQUALS
            if Match.EQUALS not in field.matches:  # a time
                match = Match.AT_LEAST
                equal = [each.row for each in rows if _is_from(each.values[field.name], value)]
            condition = Condition(field=field.name, match=match, values=(value,))
            assert _found(grammar, condition) == rows_of(equal), (field.name, value)


def _values(rows: Sequence[PlainJob | PlainRun], name: str) -> list[Any]:
    there = {each.values[name] for each in rows} - {None}
    assert there, f"no row has a value of {name}"
    return sorted(there)


def _is_from(value: Any, least: Any) -> bool:
    return value is not None and value >= least


@pytest.mark.parametrize("text", ["%", "_", "a_1", "A%2", "L_C", "we%kly", "E%K", ".*", "alice", "a/1", "\\"])
def test_a_text_is_looked_for_as_it_is(text: str) -> None:
    history, small = make_history(), text.lower()
    parts = ("jobSet", "owner")
    meant = [
        job.row
        for job in history
        if any(small in job.values[part].lower() for part in parts) or job.values["queue"] == text
    ]
    wanted: Q = jobs_found(job_filter_of([("text", text)]))
    assert rows_of(Job.objects.filter(wanted)) == rows_of(meant)
