"""Reads: what they find, in which order, and in how many queries, which never depends on the number of rows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext

from policies.decision import Verdict
from policies.failures import Failure
from scheduler.errors import Invalid, NotFound
from scheduler.filters import (
    DecisionFilter,
    JobFilter,
    RunFilter,
    decision_filter_of,
    job_filter_of,
    run_filter_of,
)
from scheduler.models import Decision, Event, Job, JobSet, PoolRound, Run, RunError, RunOutput
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.placement import Requirements
from scheduler.queries.events import events_after
from scheduler.queries.jobs import job_detail, job_page, state_counts
from scheduler.queries.listings import find_jobs
from scheduler.queries.policies import policy_detail, policy_rows, policy_versions
from scheduler.queries.queues import queue_detail, queue_rows
from scheduler.queries.runs import (
    decision_page,
    recent_decisions,
    run_detail,
    run_output,
    run_page,
)
from scheduler.queries.waiting import waiting_because
from scheduler.states import EventKind, JobState, RunState
from tests.factories import MEBI, make_executor, make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db


def decide(run: Run, *, verdict: Verdict = Verdict.RETRY, **fields: Any) -> Decision:
    """A decision of rule 1 of oom-grow that doubled the memory."""
    defaults: dict[str, Any] = {
        "policy_name": "oom-grow",
        "policy_version": 1,
        "rule_index": 0,
        "reason": "matched rule: Retry",
        "policy_used_before": 0,
        "policy_used_after": 1,
        "policy_limit": 2,
        "global_used_before": 0,
        "global_used_after": 1,
        "global_limit": 5,
        "memory_from_bytes": 64 * MEBI,
        "memory_to_bytes": 128 * MEBI,
        "decided_at": database_now(),
    }
    return Decision.objects.create(run=run, job=run.job, verdict=verdict, **{**defaults, **fields})


def failed_and_running(**fields: Any) -> Job:
    """A job whose first run failed of oom and whose second is running."""
    job = make_job(**fields)
    decide(make_run(job, state=RunState.FAILED, subcategory="limit"))
    make_run(job, node="local-2")
    return job


def append(job: Job, *kinds: EventKind) -> None:
    now = database_now()
    Event.objects.append(
        NewEvent(job_set_id=job.job_set_id, job_id=job.id, kind=kind, created=now) for kind in kinds
    )


def queries_of(read: Callable[[Job], object], job: Job) -> int:
    with CaptureQueriesContext(connection) as captured:
        read(job)
    return len(captured)


def ids(asked: str) -> set[str]:
    return {job.id for job in find_jobs(job_filter_of(asked))}


def test_a_job_is_shown_with_its_last_failure_verdict_and_runs() -> None:
    make_policy()
    job = failed_and_running()
    [row] = job_page(JobFilter()).rows
    assert row.job == job
    assert [run.state for run in row.runs] == ["failed", "running"]
    assert row.last_run is not None
    assert row.last_run.node == "local-2"
    assert row.last_failure == Failure(category="oom", subcategory="limit")
    assert row.last_verdict == "retry"
    assert row.waiting_because == ""


def test_a_job_that_never_failed_has_no_failure() -> None:
    make_run()
    [row] = job_page(JobFilter()).rows
    assert (row.last_failed_run, row.last_failure, row.last_decision, row.last_verdict) == (
        None,
        None,
        None,
        "",
    )


def test_filters_mean_any_of_their_values_and_all_of_their_fields() -> None:
    a, b = make_job("nightly", job_set="a/1"), make_job("weekly", job_set="b", state=JobState.SUCCEEDED)
    assert ids("") == {a.id, b.id}
    assert ids("queue=nightly&queue=weekly&state=succeeded") == {b.id}
    assert ids("queue=nightly&state=succeeded") == set()
    assert ids("jobSet=a/1") == {a.id}
    assert ids(f"id={a.id.upper()}") == {a.id}
    assert ids("text=A/") == ids(f"text={a.id}") == {a.id}


def test_any_failure_and_the_last_failure_are_told_apart() -> None:
    both, one = make_job(), make_job()
    make_run(both, state=RunState.FAILED, category="oom", subcategory="limit")
    make_run(both, state=RunState.FAILED, category="flaky")
    make_run(both, state=RunState.SUCCEEDED)
    make_run(one, state=RunState.FAILED, category="oom")
    assert ids("category.any=oom") == {both.id, one.id}
    assert ids("category.any=oom/limit") == {both.id}
    assert ids("category.last=oom") == {one.id}
    assert ids("category.last=flaky&category.last=other") == {both.id}


def test_a_rejected_job_failed_of_what_its_event_says() -> None:
    rejected, other = make_job(state=JobState.REJECTED), make_job()
    make_run(other, state=RunState.FAILED, category="internal", subcategory="node-failure")
    rows = {row.job.id: row for row in job_page(JobFilter()).rows}
    assert rows[rejected.id].last_failure == Failure(category="internal", subcategory="job-rejected")
    for named, expected in (
        ("internal", {rejected.id, other.id}),
        ("internal/job-rejected", {rejected.id}),
        ("job-rejected", set()),
    ):
        assert ids(f"category.any={named}") == expected
        assert ids(f"category.last={named}") == expected


def test_a_job_ended_by_returned_leases_failed_last_of_that_and_of_its_runs_before() -> None:
    spent, waiting = make_job(), make_job()
    for job in (spent, waiting):
        make_run(job, state=RunState.FAILED)
        make_run(job, state=RunState.LEASE_RETURNED, attempted=True)
    Job.objects.filter(id=spent.id).update(state=JobState.FAILED, ended_at=spent.submitted_at)
    rows = {row.job.id: row for row in job_page(JobFilter()).rows}
    assert rows[spent.id].last_failure == Failure(category="internal", subcategory="max-runs-exceeded")
    assert rows[waiting.id].last_failure == Failure(category="oom")
    assert ids("category.last=internal/max-runs-exceeded") == {spent.id}
    assert ids("category.last=oom") == {waiting.id}
    assert ids("category.any=internal") == {spent.id}
    assert ids("category.any=oom") == {spent.id, waiting.id}


def test_pages_hold_every_job_once_newest_first_whatever_is_added_meanwhile() -> None:
    at = database_now()
    jobs = [make_job(submitted_at=at - timedelta(seconds=number // 3)) for number in range(10)]
    seen: list[str] = []
    cursor = ""
    while not seen or cursor:
        page = job_page(JobFilter(), limit=3, cursor=cursor)
        seen += [row.job.id for row in page.rows]
        cursor = page.next
        make_job(submitted_at=at + timedelta(hours=1))
    in_order = sorted(jobs, key=lambda job: (job.submitted_at, job.id), reverse=True)
    assert seen == [job.id for job in in_order]


@pytest.mark.parametrize("cursor", ["x", "%", "eHg", "MjAyNi0wMS0wMQ", "MjAyNi0wMS0wMVQwMDowMDowMCBq"])
def test_a_cursor_that_was_never_given_out_is_refused(cursor: str) -> None:
    for read in (
        lambda: job_page(JobFilter(), cursor=cursor),
        lambda: run_page(RunFilter(), cursor=cursor),
        lambda: decision_page(DecisionFilter(), cursor=cursor),
    ):
        with pytest.raises(Invalid, match="cursor"):
            read()


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_the_size_of_a_page_is_limited(limit: int) -> None:
    with pytest.raises(Invalid, match="limit"):
        job_page(JobFilter(), limit=limit)
    with pytest.raises(Invalid, match="limit"):
        events_after("nightly", "set", 0, limit * 11)


def test_counts_by_state_ignore_the_states_of_the_filter() -> None:
    make_job("nightly")
    make_job("nightly", state=JobState.FAILED)
    make_job("weekly")
    counts = state_counts(job_filter_of("queue=nightly&state=failed")).counts
    assert set(counts) == set(JobState)
    assert {state: count for state, count in counts.items() if count} == {"queued": 1, "failed": 1}


def test_counts_beyond_the_bound_say_so_and_those_of_all_jobs_stay_exact() -> None:
    for number in range(5):
        make_job(("nightly", "weekly")[number % 2])
    some = state_counts(job_filter_of("queue=nightly"), bound=2)
    assert (some.is_exact, sum(some.counts.values())) == (False, 3)
    everything = state_counts(job_filter_of("state=failed"), bound=2)
    assert (everything.is_exact, everything.counts[JobState.QUEUED]) == (True, 5)
    assert state_counts(job_filter_of("queue=none"), bound=2).is_exact


def test_a_job_comes_with_everything_known_about_it() -> None:
    make_policy()
    job = failed_and_running(queue=make_queue(policies=("oom-grow",)))
    RunOutput.objects.create(run=job.runs.get(number=1), head=b"hello")
    append(job, EventKind.SUBMITTED, EventKind.QUEUED)
    detail = job_detail(job.id.upper())
    first = detail.runs[0]
    assert detail.job == job
    assert detail.pod_spec["containers"][0]["name"] == "main"
    assert (first.error.message, first.decision.verdict) == ("Container main failed", "retry")
    assert detail.sentences[first.id] == (
        "Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi."
    )
    assert detail.runs_with_output == {str(first.id)}
    assert detail.retry_policies == ("oom-grow",)
    assert [event.kind for event in detail.events] == ["queued", "submitted"]
    assert not detail.more_events


@pytest.mark.parametrize("name", ["", "job-1", "0" * 26, "z" * 26, "\x00"])
def test_a_job_that_does_not_exist_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        job_detail(name)


def test_why_a_queued_job_waits_is_told_in_words() -> None:
    job = make_job()
    assert waiting_because(job) == "No executor has been heard of yet."
    executor = make_executor()
    assert waiting_because(job) == "Waiting for the next round."
    last = PoolRound.objects.create(pool_id=executor.pool_id, unplaced={Requirements.of(job).key: "No room."})
    assert waiting_because(job) == job_detail(job.id).waiting_because == "No room."
    assert job_page(JobFilter()).rows[0].waiting_because == "No room."
    last.delete()
    job.queue.cordoned = True
    job.queue.save()
    assert (
        waiting_because(job) == "Queue 'nightly' is cordoned: no job of it is started until it is uncordoned."
    )
    make_run(job)
    assert waiting_because(job) == ""


def test_runs_are_found_by_what_they_are() -> None:
    job = failed_and_running()
    other = make_run(make_job())
    assert {run.number for run in run_page(run_filter_of(f"job={job.id}")).runs} == {1, 2}
    assert [run.id for run in run_page(run_filter_of("node=local-1&state=running")).runs] == [other.id]
    page = run_page(run_filter_of("category=oom&executor=local"))
    assert [run.job_id for run in page.runs] == [job.id]
    assert "matched category oom" in page.sentences[page.runs[0].id]


def test_one_run_and_its_output_are_found() -> None:
    run = make_run(state=RunState.FAILED)
    assert not run_detail(str(run.id)).has_output
    assert run_output(str(run.id)) is None
    RunOutput.objects.create(run=run, head=b"hello")
    decide(run)
    detail = run_detail(str(run.id))
    assert detail.has_output
    assert detail.sentence.startswith("Rule 1 of oom-grow")
    output = run_output(str(run.id))
    assert output is not None
    assert bytes(output.head) == b"hello"
    for read in (run_detail, run_output):
        for name in ("run-1", "00000000-0000-0000-0000-000000000000"):
            with pytest.raises(NotFound, match="There is no run"):
                read(name)


def test_decisions_are_found_and_read_as_sentences() -> None:
    make_policy(rules=[{"action": "Retry", "onCategory": "oom", "onSubcategory": "limit"}])
    job = failed_and_running()
    decide(make_run(make_job(), state=RunState.FAILED), verdict=Verdict.FAIL_DEFAULT, rule_index=None,
           policy_name="other", memory_from_bytes=None, memory_to_bytes=None)  # fmt: skip
    [row] = decision_page(decision_filter_of(f"policy=oom-grow&verdict=retry&job={job.id}")).rows
    assert "matched category oom/limit: retry 1 of 2" in row.sentence
    assert len(decision_page(DecisionFilter()).rows) == 2
    assert len(decision_page(decision_filter_of("verdict=retry&verdict=fail_default")).rows) == 2
    assert [decision.job_id for decision in recent_decisions(policy="oom-grow", limit=5)] == [job.id]


def test_events_are_read_by_number_as_on_the_wire() -> None:
    job = make_job(job_set="a/b")
    append(job, EventKind.SUBMITTED, EventKind.QUEUED, EventKind.LEASED)
    page = events_after("nightly", "a/b", 1, 1)
    [event] = page.events
    assert (event.id, page.last) == (2, 2)
    fields = event.message["queued"]
    assert (fields["jobId"], fields["jobSetId"], fields["queue"]) == (job.id, "a/b", "nightly")
    assert fields["created"].endswith("Z")
    assert events_after("nightly", "a/b", 3).events == ()
    assert events_after("nightly", "a/b", 3).last == 3


def test_a_job_set_to_come_has_no_events_and_an_unknown_queue_is_named() -> None:
    make_queue()
    assert events_after("nightly", "later").events == ()
    with pytest.raises(NotFound, match="job set 'nightly/later'"):
        events_after("nightly", "later", error_if_missing=True)
    with pytest.raises(NotFound, match="queue 'weekly'"):
        events_after("weekly", "later")
    with pytest.raises(Invalid):
        events_after("nightly", "later", -1)


def test_policies_are_listed_with_rules_queues_and_where_they_decide() -> None:
    make_policy("a", note="first")
    make_policy("b")
    make_queue("nightly", policies=("a", "b"))
    make_queue("weekly", policies=("b",))
    first, second = policy_rows()
    assert (first.name, first.current.rule_count, first.queues, first.decides_for) == (
        "a",
        1,
        ("nightly",),
        ("nightly",),
    )
    assert (second.queues, second.decides_for) == (("nightly", "weekly"), ("weekly",))
    assert first.current.row.note == "first"


def test_a_policy_that_cannot_be_read_is_shown_with_its_problems() -> None:
    make_policy("a", rules="nonsense")
    [row] = policy_rows()
    assert (row.current.policy, row.current.rule_count) == (None, 0)
    assert row.current.problems[0].path == "rules"


def test_versions_are_found_by_number() -> None:
    make_policy("a")
    make_policy("a", retryLimit=7)
    assert policy_detail("a").is_current
    assert not policy_detail("a", 1).is_current
    assert [version.version for version in policy_versions("a")] == [2, 1]
    for name, version in (("a", 3), ("a", 0), ("a", 2**40), ("b", None), ("b", 1), ("\x00", 1)):
        with pytest.raises(NotFound):
            policy_detail(name, version)
    with pytest.raises(NotFound):
        policy_versions("b")


def test_queues_are_listed_with_policies_and_jobs_by_state() -> None:
    make_policy("a")
    make_queue("nightly", policies=("a",))
    make_queue("weekly")
    make_job("nightly")
    make_run(make_job("nightly"))
    make_job("nightly", state=JobState.FAILED)
    nightly, weekly = queue_rows()
    assert (nightly.retry_policies, nightly.waiting, nightly.active, nightly.ended) == (("a",), 1, 1, 1)
    assert (weekly.retry_policies, sum(weekly.jobs.values()), set(weekly.jobs)) == ((), 0, set(JobState))
    assert queue_detail("nightly").spec == nightly.spec
    for name in ("monthly", "\x00", "\ud800"):
        with pytest.raises(NotFound):
            queue_detail(name)


def _fill(count: int, prefix: str) -> Job:
    job = make_job(f"{prefix}-0")
    for number in range(count):
        name = f"{prefix}-{number}"
        make_policy(name)
        if number:
            make_queue(name, policies=(name,))
        failed_and_running(queue=name)
        waiting = make_job(name, job_set=f"{prefix}-events")
        append(waiting, EventKind.SUBMITTED)
        append(job, EventKind.SUBMITTED)
        decide(make_run(job, state=RunState.FAILED))
    return job


READS: dict[str, Callable[[Job], object]] = {
    "jobs": lambda _: job_page(JobFilter()),
    "jobs by category": lambda _: job_page(job_filter_of("category.any=oom&category.last=oom")),
    "counts by state": lambda _: state_counts(JobFilter()),
    "one job": lambda job: job_detail(job.id),
    "runs": lambda _: run_page(RunFilter()),
    "decisions": lambda _: decision_page(DecisionFilter()),
    "events": lambda job: events_after(job.queue_id, job.job_set.name),
    "policies": lambda _: policy_rows(),
    "one policy": lambda _: policy_detail("one-0"),
    "queues": lambda _: queue_rows(),
}


def test_reads_take_as_many_queries_for_one_row_as_for_fifty() -> None:
    job = _fill(1, "one")
    few = {name: queries_of(read, job) for name, read in READS.items()}
    job = _fill(50, "many")
    many = {name: queries_of(read, job) for name, read in READS.items()}
    assert many == few
    assert max(few.values()) <= 10


def test_rows_that_are_made_quickly_are_those_that_django_makes() -> None:
    run = make_run(make_job(annotations={"a": "b"}), state=RunState.FAILED)
    for model in (Job, JobSet, Run, RunError):
        made = model.objects.get()
        names = [field.attname for field in model._meta.concrete_fields]
        slow = Model.from_db.__func__(model, "default", names, [getattr(made, name) for name in names])  # type: ignore[attr-defined]
        assert (made, {**vars(made), "_state": None}) == (slow, {**vars(slow), "_state": None})
        assert (
            (made._state.adding, made._state.db) == (slow._state.adding, slow._state.db) == (False, "default")
        )
    part = Run.objects.select_related("job").only("number", "job__queue").get()
    assert part.get_deferred_fields() >= {"node", "category"}
    assert (part.node, part.job.annotations, part.job.queue.name) == (run.node, {"a": "b"}, "nightly")
    part.number = 7
    part.save(update_fields=["number"])
    assert Run.objects.get().number == 7
