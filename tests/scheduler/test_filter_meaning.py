"""Every filter finds what the same filter in plain Python finds among the same rows."""

from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from scheduler.filters import (
    DECISIONS,
    JOBS,
    RUNS,
    Ago,
    Condition,
    DecisionFilter,
    FilterField,
    Grammar,
    JobFilter,
    Kind,
    Match,
    RunFilter,
    Scope,
    decision_filter_of,
    job_filter_of,
)
from scheduler.models import Decision, Job, Run
from scheduler.models.clock import database_now
from scheduler.queries.leads import jobs_found
from scheduler.queries.meaning import decisions_where, jobs_where, runs_where
from tests.fuzz.effort import tried
from tests.scheduler.history_rows import PlainJob, all_runs, make_history
from tests.scheduler.invariants import check_last_run
from tests.scheduler.plain_filters import job_is_meant, rows_of, run_is_meant

pytestmark = pytest.mark.django_db

_NAMES = """
    nightly we%kly alice al_ce al a/1 a_1 A%2 ax1 % _ \\ ' oom oom/limit limit none gpu_x gpu_x/xid internal
    internal/job-rejected job-rejected max-runs-exceeded lease-expired gpu-07 gpu_07 n%1 east we_st armada-default
    default x_1 x%1 one night oom-grow oom_grow memory 100% _MiB OOM olga too_slow No gang-1 client-3
"""
_TEXTS = _NAMES.split()
_KEYS = {
    "annotation": ("example.com/a", "1", "other"),
    "label": ("team.any", "x"),
    "resource": ("nvidia.com/gpu", "y"),
}


@pytest.fixture
def history() -> list[PlainJob]:
    return make_history()


def _values(field: FilterField, history: list[PlainJob]) -> st.SearchStrategy[Any]:
    drawn: dict[Kind, st.SearchStrategy[Any]] = {
        Kind.TEXT: st.sampled_from([*_TEXTS, f"{0:032d}", f"{1:032d}"]),
        Kind.WORD: st.sampled_from(field.words or ("",)),
        Kind.JOB_ID: st.sampled_from([job.row.id for job in history]),
        Kind.RUN_ID: st.sampled_from([run.row.id for run in all_runs(history)]),
        Kind.WHOLE: st.sampled_from([-1, 0, 1, 2, 3, 137, 2**40]),
        Kind.NUMBER: st.sampled_from([0.0, 0.5, 9.0, 100.0, 204.0]),
        Kind.CPU: st.sampled_from([0, 100, 1_500, 2**62]),
        Kind.BYTES: st.sampled_from([0, 64 << 20, 2 << 30, 1 << 30]),
        Kind.TIME: st.sampled_from([*_times(history), Ago(timedelta(hours=3, seconds=5))]),
        Kind.FLAG: st.booleans(),
    }
    return drawn[field.kind]


def _conditions(grammar: Grammar, history: list[PlainJob]) -> st.SearchStrategy[Condition]:
    fields = [field for field in grammar.fields.values() if not field.is_search]
    values_of = {field: _values(field, history) for field in fields}

    @st.composite
    def drawn(draw: st.DrawFn) -> Condition:
        field = draw(st.sampled_from(fields))
        match = draw(st.sampled_from(field.matches))
        values = draw(
            st.lists(values_of[field], min_size=1, max_size=1 if match.is_comparison else 3, unique=True)
        )
        return Condition(
            field=field.name,
            key=draw(st.sampled_from(_KEYS[field.name])) if field.is_keyed else "",
            scope=field.scope,
            match=match,
            values=() if match is Match.EXISTS else tuple(values),
            negated=not match.is_comparison and draw(st.booleans()),
        )

    return drawn()


def _times(jobs: list[PlainJob]) -> list[datetime]:
    decided = {run.values["decided"] for run in all_runs(jobs)} - {None}
    moments = {job.row.submitted_at for job in jobs} | {run.row.leased_at for run in all_runs(jobs)} | decided
    return sorted(moments)[::3]


@pytest.mark.parametrize("size", [1, 3])
def test_every_filter_of_jobs_means_what_it_says(history: list[PlainJob], size: int) -> None:
    now, conditions = database_now(), _conditions(JOBS, history)

    @tried(100)
    @given(asked=st.lists(conditions, min_size=size, max_size=size))
    def holds(asked: list[Condition]) -> None:
        wanted = JobFilter(tuple(asked))
        expected = rows_of(job.row for job in history if job_is_meant(job, wanted, now))
        assert rows_of(Job.objects.filter(jobs_found(wanted))) == expected

    holds()


def test_every_filter_of_runs_means_what_it_says(history: list[PlainJob]) -> None:
    now = database_now()

    @tried(100)
    @given(asked=st.lists(_conditions(RUNS, history), min_size=1, max_size=3))
    def holds(asked: list[Condition]) -> None:
        wanted = RunFilter(tuple(asked))
        expected = rows_of(run.row for run in all_runs(history) if run_is_meant(run, wanted, now))
        assert rows_of(Run.objects.filter(runs_where(wanted))) == expected

    holds()


def test_every_filter_of_decisions_means_what_it_says(history: list[PlainJob]) -> None:
    now = database_now()
    decided = [run for run in all_runs(history) if run.values["verdict"]]

    @tried(100)
    @given(asked=st.lists(_conditions(DECISIONS, history), min_size=1, max_size=2))
    def holds(asked: list[Condition]) -> None:
        wanted = RunFilter(tuple(asked))
        expected = rows_of(run.row for run in decided if run_is_meant(run, wanted, now))
        found = Decision.objects.filter(decisions_where(DecisionFilter(tuple(asked))))
        assert rows_of(found) == expected

    holds()


@pytest.mark.parametrize("grammar", [JOBS, RUNS], ids=["jobs", "runs"])
def test_a_condition_and_its_negation_share_nothing_and_leave_nothing_out(
    history: list[PlainJob], grammar: Grammar
) -> None:
    model, wanted_of, where = {"jobs": (Job, JobFilter, jobs_where), "runs": (Run, RunFilter, runs_where)}[
        grammar.things
    ]
    everything = rows_of(model.objects.all())  # type: ignore[attr-defined]

    @tried(60)
    @given(asked=_conditions(grammar, history))
    def holds(asked: Condition) -> None:
        found = []
        for negated in (False, True):
            condition = Condition(field=asked.field, key=asked.key, scope=asked.scope, match=asked.match,
                                  values=asked.values, negated=negated)  # fmt: skip
            found += rows_of(model.objects.filter(where(wanted_of((condition,)))))  # type: ignore[attr-defined,operator]
        assert sorted(found) == everything

    holds()


@pytest.mark.parametrize(
    "asked",
    [
        "verdict=retry",
        "policy^=oom_",
        "ruleIndex?=no",
        "category=oom/limit&executor!=east",
        "queue=nightly&policyVersion>=2",
    ],
)
def test_decisions_are_found_by_themselves_and_by_their_runs(history: list[PlainJob], asked: str) -> None:
    wanted, now = decision_filter_of(asked), database_now()
    found = Decision.objects.filter(decisions_where(wanted)).select_related("run")
    decided = [run for run in all_runs(history) if run.values["verdict"] is not None]
    expected = [run.row for run in decided if run_is_meant(run, RunFilter(wanted.conditions), now)]
    assert rows_of(decision.run for decision in found) == rows_of(expected)
    assert 0 < len(expected) < len(decided)


def test_what_is_said_of_some_run_is_said_of_one_and_the_same(history: list[PlainJob]) -> None:
    one = next(job for job in history if len(job.runs) == 3)
    first, second = one.runs[0].values, one.runs[1].values
    assert first["node"] != second["node"]
    same = job_filter_of(
        f"id={one.row.id}&exitCode.any={first['exitCode']}&node.any={first['node'].replace('%', '%25')}"
    )
    mixed = job_filter_of(
        f"id={one.row.id}&exitCode.any={first['exitCode']}&node.any={second['node'].replace('%', '%25')}"
    )
    assert Job.objects.filter(jobs_where(same)).exists()
    assert not Job.objects.filter(jobs_where(mixed)).exists()


def test_jobs_from_before_learn_where_they_ran_and_what_they_failed_of(
    history: list[PlainJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ("id", "last_executor", "last_node", "last_pool", "last_category", "last_subcategory")
    before = list(Job.objects.order_by("id").values_list(*known))
    Job.objects.update(**dict.fromkeys(known[1:]))
    earlier_jobs = import_module("scheduler.migrations.0014_last_runs_of_earlier_jobs")
    monkeypatch.setattr(earlier_jobs, "BATCH", 5)
    with connection.schema_editor() as editor:
        earlier_jobs.fill(None, editor)
    assert list(Job.objects.order_by("id").values_list(*known)) == before
    for job in Job.objects.all():
        check_last_run(job, list(job.runs.order_by("number")))


@pytest.mark.parametrize("field", JOBS.fields.values(), ids=lambda field: field.shown_name)
def test_every_field_takes_every_comparison_it_offers_in_one_query(field: FilterField) -> None:
    example: dict[Kind, Any] = {
        Kind.TEXT: "a", Kind.WORD: next(iter(field.words), ""), Kind.JOB_ID: "01m8j53gvqm9s346q3d25vt4f5",
        Kind.WHOLE: 2**63 - 1, Kind.NUMBER: 1e308, Kind.CPU: 2**63 - 1, Kind.BYTES: -(2**63) + 1, Kind.FLAG: True,
        Kind.TIME: Ago(timedelta(days=36_500)),
    }  # fmt: skip
    for match in field.matches:
        key = "example.com/a" if field.is_keyed else ""
        values = () if match is Match.EXISTS else (example[field.kind],)
        condition = Condition(field=field.name, key=key, scope=field.scope, match=match, values=values)
        with CaptureQueriesContext(connection) as captured:
            list(Job.objects.filter(jobs_where(JobFilter((condition,)))))
        assert len(captured) <= 1


def _names(grammar: Grammar) -> set[str]:
    return {field.shown_name for field in grammar.fields.values()}


def test_what_is_asked_of_runs_is_asked_of_jobs_by_any_and_last() -> None:
    of_runs = {field.name for field in JOBS.fields.values() if field.scope is Scope.ANY}
    assert of_runs == {field.name for field in JOBS.fields.values() if field.scope is Scope.LAST}
    assert of_runs - {"runState"} <= _names(RUNS)
    assert {"verdict", "policy", "decided", "run"} <= _names(DECISIONS)
