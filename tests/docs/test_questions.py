"""The page of questions: each is asked of a history, and finds what the same question in plain Python finds."""

import re

import pytest

from scheduler.actors import Role
from scheduler.filters import JobFilter, RunFilter, decision_filter_of, job_filter_of, order_of, run_filter_of
from scheduler.filters.orders import NEWEST_DECISIONS, NEWEST_JOBS, NEWEST_RUNS
from scheduler.models import Job
from scheduler.models.clock import database_now
from tests.api.caller import caller
from tests.docs.reading import DOCS, text_of
from tests.scheduler.history_rows import all_runs, make_history
from tests.scheduler.plain_filters import job_is_meant, run_is_meant
from tests.scheduler.plain_orders import in_order

PAGE = DOCS / "how-to" / "ask-the-history.md"
QUESTIONS: list[tuple[str, str]] = re.findall(
    r"^ +GET /api/v1/(jobs|runs|decisions)\?(.+)$", text_of(PAGE), re.MULTILINE
)
_BESIDES = ("sort", "limit", "fields", "count")
_NEWEST = {"jobs": NEWEST_JOBS, "runs": NEWEST_RUNS, "decisions": NEWEST_DECISIONS}


def test_there_are_twenty() -> None:
    assert len(QUESTIONS) == len(re.findall(r"^\d+\. ", text_of(PAGE), re.MULTILINE)) == 20


def _filter_in(query: str) -> str:
    kept = [part for part in query.split("&") if part.partition("=")[0] not in _BESIDES]
    return "&".join(kept)


def _expected(kind: str, query: str) -> list[str]:
    """In the order of the question."""
    asked, history, now = _filter_in(query), make_history(), database_now()
    sort = re.search(r"sort=([^&]+)", query)
    order = order_of(sort[1] if sort else "", kind, _NEWEST[kind])
    if kind == "jobs":
        wanted: JobFilter = job_filter_of(asked)
        jobs = [job for job in history if job_is_meant(job, wanted, now)]
        return [job.row.id for job in in_order(jobs, order, kind)]
    decided = kind == "decisions"
    conditions = (decision_filter_of(asked) if decided else run_filter_of(asked)).conditions
    runs = [run for run in all_runs(history) if not decided or run.values["verdict"]]
    meant = [run for run in runs if run_is_meant(run, RunFilter(conditions), now)]
    return [str(run.row.id) for run in in_order(meant, order, kind)]


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "query"), QUESTIONS)
def test_a_question_is_answered(kind: str, query: str) -> None:
    expected = _expected(kind, query)
    answer = caller("rita", Role.READER).get(f"v1/{kind}?{query}")
    assert answer.status == 200
    found = [each["jobId" if kind == "jobs" else "runId"] for each in answer.body[kind]]
    limit = re.search(r"limit=(\d+)", query)
    assert found == expected[: int(limit[1]) if limit else 100]
    if "count=true" in query:
        assert answer.body["total"] == {"count": len(expected), "exact": True}


@pytest.mark.django_db
def test_most_questions_find_something() -> None:
    make_history()
    alice = caller("rita", Role.READER)
    found = [len(alice.get(f"v1/{kind}?{query}").body[kind]) for kind, query in QUESTIONS]
    assert Job.objects.exists()
    assert sum(count > 0 for count in found) > 14
