"""Groups of jobs: whatever they are grouped by, they sum to the list; kept totals say the same as counting."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from scheduler.errors import Invalid, TooMuchAsked
from scheduler.filters import JobFilter, job_filter_of
from scheduler.models import Decision, Job
from scheduler.models.clock import database_now
from scheduler.queries.groups import GROUPS, JobGroup, job_groups
from scheduler.queries.jobs import JobRow, job_rows
from scheduler.queries.listings import find_jobs
from scheduler.queries.patience import within
from scheduler.queries.rollups import rows_of
from scheduler.rollups import roll_up
from scheduler.states import TERMINAL_JOB_STATES, JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run

pytestmark = pytest.mark.django_db

KEYS: Mapping[str, Callable[[JobRow], object]] = {
    "queue": lambda row: row.job.queue_id,
    "namespace": lambda row: row.job.namespace,
    "jobSet": lambda row: row.job.job_set.name,
    "state": lambda row: row.job.state,
    "executor": lambda row: row.last_run and row.last_run.executor_id,
    "node": lambda row: row.last_run and row.last_run.node,
    "pool": lambda row: row.last_run and row.last_run.pool,
    "category": lambda row: row.last_failure and row.last_failure.category,
    "subcategory": lambda row: row.last_failure and row.last_failure.subcategory,
    "verdict": lambda row: row.last_verdict or None,
    "policy": lambda row: row.last_decision and row.last_decision.policy_name,
    "annotation.example.com/team": lambda row: row.job.annotations.get("example.com/team"),
}
"""What groups mean, in plain Python over the rows of the list."""


def make_jobs(count: int, *, seed: int) -> None:
    """Jobs of all sorts: of two queues, in every state, with none to three runs that ended in every way."""
    chance = random.Random(seed)  # noqa: S311
    executors = [make_executor("east"), make_executor("west", pool="gpu")]
    for name in ("nightly", "daily"):
        make_queue(name)
    for _ in range(count):
        submitted = database_now() - timedelta(minutes=chance.randrange(5_000))
        job = make_job(
            chance.choice(("nightly", "daily")), job_set=chance.choice(("a", "b")), submitted_at=submitted,
            namespace=chance.choice(("default", "dev")),
            annotations=chance.choice(({}, {"example.com/team": "red"}, {"example.com/team": "blue"})),
        )  # fmt: skip
        for _ in range(chance.randrange(4)):
            _make_run(job, chance, executor=chance.choice(executors))
        _end(job, chance)


def _make_run(job: Job, chance: random.Random, **fields: Any) -> None:
    state = chance.choice((RunState.FAILED, RunState.FAILED, RunState.LEASE_EXPIRED, RunState.LEASE_RETURNED))
    if state is RunState.FAILED:
        fields["category"] = chance.choice(("oom", "disk", ""))
    run = make_run(job, state=state, **fields)
    if state is RunState.FAILED and chance.random() < 0.5:
        Decision.objects.create(
            run=run, job=job, policy_name=chance.choice(("grow", "move")), policy_version=1,
            verdict=chance.choice(("retry", "fail_rule")), policy_used_before=0, policy_used_after=1,
            policy_limit=1, global_used_before=0, global_used_after=1, global_limit=1,
            decided_at=database_now(),
        )  # fmt: skip


def _end(job: Job, chance: random.Random) -> None:
    state = chance.choice(list(JobState))
    at = job.submitted_at + timedelta(seconds=chance.randrange(1_000))
    ended = at if state in TERMINAL_JOB_STATES else None
    Job.objects.filter(id=job.id).update(state=state, state_changed_at=at, ended_at=ended)


def rows_in_the_list(wanted: JobFilter) -> list[JobRow]:
    return job_rows(list(find_jobs(wanted)))


def check(group: JobGroup, rows: list[JobRow]) -> None:
    jobs = [row.job for row in rows]
    assert group.jobs == len(jobs)
    assert group.states == Counter(JobState(job.state) for job in jobs)
    assert group.first_submitted_at == min(job.submitted_at for job in jobs)
    assert group.last_submitted_at == max(job.submitted_at for job in jobs)
    assert group.last_changed_at == max(job.state_changed_at for job in jobs)
    changed = sum(job.state_changed_at.timestamp() for job in jobs) / len(jobs)
    assert group.average_changed_at.timestamp() == pytest.approx(changed)
    lasted = [(job.ended_at - job.submitted_at).total_seconds() for job in jobs if job.ended_at]
    assert group.average_seconds == (pytest.approx(sum(lasted) / len(lasted)) if lasted else None)


def compare(wanted: JobFilter, by: tuple[str, ...]) -> None:
    """The groups are what plain Python makes of the list."""
    expected: dict[tuple[object, ...], list[JobRow]] = {}
    for row in rows_in_the_list(wanted):
        expected.setdefault(tuple(KEYS[name](row) for name in by), []).append(row)
    found = job_groups(wanted, by, limit=1_000)
    assert {group.keys for group in found.groups} == set(expected)
    assert [group.jobs for group in found.groups] == sorted((len(e) for e in expected.values()), reverse=True)
    for group in found.groups:
        check(group, expected[group.keys])


def test_every_group_is_the_jobs_of_the_list_that_belong_to_it() -> None:
    make_jobs(60, seed=1)
    for name in KEYS:
        compare(JobFilter(), (name,))
    compare(JobFilter(), ("queue", "category", "node"))
    compare(JobFilter(), ("state", "queue", "annotation.example.com/team", "policy"))


@pytest.mark.parametrize(
    "asked", ["queue=nightly", "state=failed", "category.any=oom", "node.last!=east-1", "retries>0"]
)
def test_groups_take_the_filters_of_the_list(asked: str) -> None:
    make_jobs(40, seed=2)
    for by in (("queue",), ("state",), ("node", "category")):
        compare(job_filter_of(asked), by)


@pytest.mark.parametrize("by", [("queue",), ("state",), ("queue", "state"), ("state", "queue")])
def test_kept_totals_are_exact_at_any_moment(by: tuple[str, ...]) -> None:
    make_jobs(30, seed=3)
    compare(JobFilter(), by)
    roll_up()
    compare(JobFilter(), by)
    for job in Job.objects.filter(ended_at=None)[:5]:
        Job.objects.filter(id=job.id).update(state=JobState.FAILED, ended_at=job.state_changed_at)
    make_job("nightly", state=JobState.REJECTED)
    compare(JobFilter(), by)
    roll_up()
    compare(JobFilter(), by)


def test_groups_can_all_be_tested_here() -> None:
    assert set(GROUPS) == {name for name in KEYS if not name.startswith("annotation.")}


def test_groups_beyond_the_limit_are_told_of() -> None:
    for name in ("a", "b", "c"):
        make_job(job_set=name)
    assert job_groups(JobFilter(), ("jobSet",), limit=3).more is False
    found = job_groups(JobFilter(), ("jobSet",), limit=2)
    assert found.more and [group.keys for group in found.groups] == [("a",), ("b",)]


def test_a_filter_that_contradicts_itself_has_no_groups() -> None:
    make_job()
    assert not job_groups(job_filter_of("id=01aaaaaaaaaaaaaaaaaaaaaaaa"), ("queue",)).groups
    assert not job_groups(JobFilter(), ("queue",), limit=1).more


@pytest.mark.parametrize(
    ("by", "limit"),
    [((), 1), (("queue", "queue"), 1), (("colour",), 1), (("annotation.",), 1), (("annotation.\x00",), 1),
     (("annotation." + "k" * 400,), 1), (tuple(KEYS)[:5], 1), (("queue",), 0), (("queue",), 1_001)],
)  # fmt: skip
def test_nonsense_is_refused_with_what_there_is(by: tuple[str, ...], limit: int) -> None:
    with pytest.raises(Invalid, match="takes"):
        job_groups(JobFilter(), by, limit=limit)


def test_one_query_answers_however_many_jobs_and_groups(django_assert_num_queries: Any) -> None:
    make_jobs(20, seed=4)
    for by in (("queue",), ("node", "category", "verdict")):
        with django_assert_num_queries(5):  # the savepoint, the time it may take, the groups
            job_groups(JobFilter(), by)


def test_a_question_that_takes_too_long_is_told_how_to_be_smaller() -> None:
    with pytest.raises(TooMuchAsked, match="Ask for fewer"), within(0.05, narrow="Ask for fewer."):
        rows_of("SELECT pg_sleep(5)", {})
    make_job()
    assert Job.objects.count() == 1
