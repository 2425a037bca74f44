"""Every question of `tack bench history` is answered by the indexes that were made for it, at 100,000 jobs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import Decision, HistoryMark, Job, Run, RunError
from scheduler.models.rollups import FAMILIES
from scheduler.rollups import count_ended_jobs, hour_of
from tests.benchmarks.history_data import make_history
from tests.benchmarks.history_questions import QUESTION

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

JOBS = 100_000
INDEXES = {
    "L1": "job_newest",
    "L2": "job_by_queue",
    "L3": "job_by_queue_and_state",
    "L4": "job_by_job_set",
    "L5": "job_by_job_set",
    "L6": "job_by_state",
    "L7": "scheduler_jobannotation_pkey",
    "L8": "scheduler_jobannotation_pkey",
    "L9": "job_by_last_node",
    "L9b": "job_by_last_node",
    "L10": "job_active",
    "L11": "job_by_queue",
    "L12": "job_by_queue",
    "L13": "scheduler_job_pkey",
    "L14": "job_by_change",
    "L15": "job_by_state",
    "L16": "job_by_queue_and_state",
    "L17": "job_by_queue",
    "R1": "run_newest",
    "R2": "run_by_queue",
    "R3": "run_by_node",
    "R4": "run_by_category",
    "R5": "run_by_queue",
    "R6": "run_newest",
    "R7": "decision_newest",
    "R8": "decision_of_policy",
    "R9": "run_failed",
    "R10": "run_by_kind",
    "G1": "job_active",
    "G2": "job_by_queue",
    "G3": "job_by_state",
    "G4": "job_by_queue",
    "G5": "job_failed",
    "G6": "job_by_last_executor",
    "G7": "job_by_queue_and_state",
    "G8": "job_by_queue_and_state",
    "D1": "scheduler_jobspec_pkey",
    "D2": "scheduler_job_pkey run_number_once_per_job scheduler_jobspec_pkey scheduler_decision_pkey",
    "D3": "scheduler_runerror_pkey",
    "D4": "scheduler_run_pkey scheduler_runerror_pkey scheduler_decision_pkey",
    "X1": "job_by_last_category",
    "X2": "run_by_node",
    "X3": "node_day_total_once node_failure_day_once pool_failure_day_once run_by_end",
    "X3b": "node_day_total_once node_failure_day_once pool_failure_day_once run_by_end",
    "X4": "job_by_queue",
    "X5": "run_failed_of_queue",
    "X6": "failure_day_once run_by_end",
    "T1": "run_by_end",
    "T2": "retry_day_once retry_hour_once decision_newest run_by_end",
    "T3": "queue_failure_day_once failure_hour_once run_by_end",
    "T4": "run_by_end",
    "T5": "job_by_owner",
    "T6": "run_by_kind",
    "T7": "run_by_category",
}

_INDEXES = """
    SELECT indexname, indexdef FROM pg_indexes
     WHERE tablename IN ('scheduler_job', 'scheduler_run', 'scheduler_decision')
       AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""
# Those that nothing refers to.
_KEYS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
     WHERE contype = 'p' AND conname IN ('scheduler_jobannotation_pkey', 'scheduler_jobspec_pkey',
                                         'scheduler_decision_pkey', 'scheduler_runerror_pkey')
"""
_ANNOTATIONS = """
    INSERT INTO scheduler_jobannotation (key, value, job_submitted_at, job_id)
    SELECT key, annotations->>key, submitted_at, id
      FROM scheduler_job CROSS JOIN unnest(ARRAY['example.com/c', 'example.com/e']) AS key
"""
_SPECS = "INSERT INTO scheduler_jobspec (job_id, pod_spec) SELECT id, '{}' FROM scheduler_job WHERE state = 'failed'"


def test_every_question_uses_the_indexes_that_serve_it() -> None:
    assert INDEXES.keys() == QUESTION.keys()
    with _indexes_made_last():
        make_history(JOBS, only=(Job, Run, Decision, RunError))
        _make_what_is_asked_for()
    _add_up()
    _seem_vacuumed()
    used = {question: set(_indexes_used(question)) for question in QUESTION}
    assert {name: found for name, found in used.items() if not set(INDEXES[name].split()) <= found} == {}


@contextmanager
def _indexes_made_last() -> Iterator[None]:
    """Rows come in without indexes, which takes less time."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '64MB'; SET LOCAL maintenance_work_mem = '128MB'")
        # Nearly all rows are looked at, so that no plan hangs on which.
        cursor.execute("SET LOCAL default_statistics_target = 300")
        cursor.execute(_INDEXES)
        indexes = cursor.fetchall()
        cursor.execute(f"DROP INDEX {', '.join(name for name, _ in indexes)}")
        cursor.execute(_KEYS)
        keys = cursor.fetchall()
        cursor.execute("; ".join(f"ALTER TABLE {table} DROP CONSTRAINT {name}" for table, name, _ in keys))
        yield
        cursor.execute(
            "; ".join(f"ALTER TABLE {table} ADD CONSTRAINT {name} {key}" for table, name, key in keys)
        )
        cursor.execute("; ".join(definition for _, definition in indexes))


def _make_what_is_asked_for() -> None:
    """Of the annotations those that jobs are found by, and specs, which are read one by one, of some jobs."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # what is referred to is there
        cursor.execute(_ANNOTATIONS)
        cursor.execute(_SPECS)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE scheduler_jobannotation, scheduler_jobspec")


def _add_up() -> None:
    """As hour by hour, but all hours at once, of as many days as are asked for."""
    over = hour_of(HistoryMark.objects.over_until())
    for family in FAMILIES:
        family.add(over - timedelta(days=8 if "node" in family.table else 31), over)
    HistoryMark.objects.create(closed_until=over)
    count_ended_jobs()
    tables = {family.table for family in FAMILIES}
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE scheduler_historymark, scheduler_jobtotal, {', '.join(tables)}")


def _seem_vacuumed() -> None:
    """A transaction cannot vacuum; without, no plan would trust an index alone."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_class SET relallvisible = relpages WHERE relname LIKE 'scheduler%'")


def _indexes_used(question: str) -> Iterator[str]:
    """The indexes of the plans of all statements that a question asks."""
    asked = QUESTION[question]
    value = asked.find(asked.values[4 % len(asked.values)])
    with CaptureQueriesContext(connection) as seen:
        asked.ask(value)
    for statement in seen.captured_queries:
        if statement["sql"].startswith(("SELECT", "\n", "WITH")) and "set_config" not in statement["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {statement['sql']}")
                (told,) = cursor.fetchone()
            yield from _indexes_in((json.loads(told) if isinstance(told, str) else told)[0]["Plan"])


def _indexes_in(plan: dict[str, Any]) -> Iterator[str]:
    if "Index Name" in plan:
        yield plan["Index Name"]
    for part in plan.get("Plans", ()):
        yield from _indexes_in(part)
