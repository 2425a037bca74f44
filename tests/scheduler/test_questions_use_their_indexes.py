"""Each question of `tack bench history` is answered by the index that was made for it, at 100,000 jobs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import Job, Run
from tests.benchmarks.history_data import make_history
from tests.benchmarks.history_questions import QUESTION

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

JOBS = 100_000
INDEXES = {
    "L1": "job_newest",
    "L2": "job_by_queue",
    "L3": "job_by_queue_and_state",
    "L7": "job_by_annotation",
    "L9": "job_by_last_node",
    "L11": "job_by_queue",
    "L14": "job_by_change",
    "L16": "job_by_queue_and_state",
    "L17": "job_by_queue",
    "G1": "job_by_queue_and_state",
    "G3": "job_by_queue_and_state",
    "X2": "run_by_node",
    "X5": "run_failed_of_queue",
}


def test_listed_questions_use_the_index_that_serves_them() -> None:
    make_history(JOBS, only=(Job, Run))
    used = {question: set(_indexes_used(question)) for question in INDEXES}
    assert {question: names for question, names in used.items() if INDEXES[question] not in names} == {}


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
