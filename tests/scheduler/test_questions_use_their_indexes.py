"""Each question of `tack bench history` is answered by the index that was made for it, at 100,000 jobs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import Job, JobAnnotation, Run
from tests.benchmarks.history_data import make_history
from tests.benchmarks.history_questions import QUESTION

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

JOBS = 100_000
INDEXES = {
    "L1": "job_newest",
    "L2": "job_by_queue",
    "L3": "job_by_queue_and_state",
    "L4": "job_by_job_set",
    "L7": "scheduler_jobannotation_pkey",
    "L8": "scheduler_jobannotation_pkey",
    "L9": "job_by_last_node",
    "L9b": "job_by_last_node",
    "L10": "job_active",
    "L11": "job_by_queue",
    "L14": "job_by_change",
    "L16": "job_by_queue_and_state",
    "L17": "job_by_queue",
    "R1": "run_newest",
    "R2": "run_by_queue",
    "R3": "run_by_node",
    "R4": "run_by_category",
    "R5": "run_by_queue",
    "R9": "run_failed",
    "G1": "job_active",
    "G2": "job_by_queue",
    "G3": "job_by_state",
    "G4": "job_by_queue",
    "G5": "job_failed",
    "G6": "job_by_last_executor",
    "X1": "job_by_last_category",
    "X2": "run_by_node",
    "X5": "run_failed_of_queue",
}

_INDEXES = """
    SELECT indexname, indexdef FROM pg_indexes
     WHERE tablename IN ('scheduler_job', 'scheduler_run') AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""


def test_listed_questions_use_the_index_that_serves_them() -> None:
    with _indexes_made_last():
        make_history(JOBS, only=(Job, JobAnnotation, Run))
    _seem_vacuumed()
    used = {question: set(_indexes_used(question)) for question in INDEXES}
    assert {question: names for question, names in used.items() if INDEXES[question] not in names} == {}


@contextmanager
def _indexes_made_last() -> Iterator[None]:
    """Rows come in without indexes, which takes less time."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '64MB'; SET LOCAL maintenance_work_mem = '128MB'")
        cursor.execute(_INDEXES)
        indexes = cursor.fetchall()
        cursor.execute(f"DROP INDEX {', '.join(name for name, _ in indexes)}")
        yield
        cursor.execute("; ".join(definition for _, definition in indexes))


def _seem_vacuumed() -> None:
    """A transaction cannot vacuum; without, no plan would trust an index alone."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_class SET relallvisible = relpages WHERE relname LIKE 'scheduler%'")


def _indexes_used(question: str) -> Iterator[str]:
    """The indexes of the plans of all statements that a question asks."""
    asked = QUESTION[question]
    with CaptureQueriesContext(connection) as seen:
        asked.ask(asked.values[4 % len(asked.values)])
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
