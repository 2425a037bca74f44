"""Settling: what becomes of a job whose run ended badly, told from the rows it leaves."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import Report, ReportState
from scheduler.models import Decision, Event, Executor, Job, Node, Queue, RetryPolicy, Run, RunError
from scheduler.models import jobs as rows_of_jobs
from scheduler.queries.sentences import decision_sentences
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.factories import (
    MEBI,
    OOM_GROW,
    make_executor,
    make_job,
    make_policy,
    make_queue,
    make_run,
    more_like,
)

ON = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), indexed_node_labels=("kubernetes.io/hostname",)
)
OFF = Configuration()

pytestmark = pytest.mark.django_db


def failed_job(*, policies: tuple[str, ...] = ("oom-grow",), queue: str = "nightly", **fields: Any) -> Job:
    """A job whose only run failed for memory on local-1, in a queue with the policy attached."""
    for name in policies:
        if not RetryPolicy.objects.filter(name=name).exists():
            make_policy(name)
    if not Queue.objects.filter(name=queue).exists():
        make_queue(queue, policies=policies)
    executor = Executor.objects.filter(name="local").first() or make_executor("local", nodes=2)
    job = make_job(queue, state="running", **fields)
    make_run(job, state=RunState.FAILED, executor=executor, message="killed for memory")
    return job


def settled(job: Job, config: Configuration = ON) -> Job:
    settle_runs(config=config)
    return Job.objects.get(id=job.id)


def events_of(job: Job) -> list[tuple[str, dict[str, Any]]]:
    return [(event.kind, event.payload) for event in Event.objects.filter(job=job).order_by("number")]


def test_a_matching_rule_requeues_the_job_with_twice_the_memory() -> None:
    job = settled(failed_job())
    assert (job.state, job.memory_limit_bytes, job.memory_request_bytes) == ("queued", 128 * MEBI, 128 * MEBI)
    assert (job.memory_factor, job.queued_version) == (2.0, 2)
    decision = Decision.objects.get()
    assert (decision.verdict, decision.rule_index, decision.policy_version) == ("retry", 0, 1)
    assert (decision.memory_from_bytes, decision.memory_to_bytes) == (64 * MEBI, 128 * MEBI)
    assert (decision.policy_used_before, decision.policy_used_after, decision.policy_limit) == (0, 1, 2)
    run = Run.objects.get()
    assert run.settled_at is not None and run.retryable is True and run.undecided_because == ""
    [(kind, payload)] = events_of(job)
    assert kind == "failed" and payload["retryable"] is True
    assert (payload["failureCategory"], payload["reason"]) == ("oom", "killed for memory")
    assert (payload["retryPolicyName"], payload["cause"]) == ("oom-grow", "OOM")


def test_settling_twice_changes_nothing() -> None:
    job = settled(failed_job())
    again = settled(job)
    assert (again.queued_version, again.version) == (job.queued_version, job.version)
    assert Decision.objects.count() == 1 and len(events_of(job)) == 1


def test_the_same_failure_told_five_times_before_and_after_it_was_settled_spends_one_retry() -> None:
    run = make_run(make_job(make_queue(policies=(make_policy().name,))), state=RunState.RUNNING)
    late = [
        Report(run_id=str(run.id), state=state, category="oom")
        for state in (ReportState.FAILED, ReportState.RUNNING, ReportState.FAILED, ReportState.SUCCEEDED)
    ]
    for _ in range(5):
        record_reports(executor="local", reports=late)
        settle_runs(config=ON)
    run.job.refresh_from_db()
    assert (run.job.state, run.job.queued_version) == ("queued", 2)
    assert [kind for kind, _ in events_of(run.job)] == ["failed"]
    assert Decision.objects.get().policy_used_after == 1


def test_a_spent_budget_fails_the_job_with_the_verdict_and_the_last_error() -> None:
    make_policy("oom-grow", retryLimit=0)
    job = settled(failed_job())
    assert job.state == "failed" and job.ended_at is not None
    [(_, payload)] = events_of(job)
    assert payload["retryable"] is False and "podName" not in payload
    assert payload["reason"] == (
        "Retry policy: policy retry limit exceeded (0/0)\n\nFinal run error:\nkilled for memory"
    )
    assert Run.objects.get().retryable is False


def test_without_a_policy_the_failure_is_the_jobs_unchanged() -> None:
    job = settled(failed_job(policies=()))
    assert job.state == "failed"
    [(_, payload)] = events_of(job)
    assert payload["reason"] == "killed for memory" and "retryPolicyName" not in payload
    assert Run.objects.get().undecided_because == "no_policy" and not Decision.objects.exists()


def test_the_default_policy_decides_for_queues_that_have_none() -> None:
    make_policy("fallback")
    config = Configuration(
        retry_policy=RetryPolicyConfiguration(enabled=True, default_policy_name="fallback"),
        indexed_node_labels=("kubernetes.io/hostname",),
    )
    assert settled(failed_job(policies=()), config).state == "queued"
    assert Decision.objects.get().policy_name == "fallback"


def test_with_the_flag_off_no_policy_is_read() -> None:
    job = failed_job()
    with CaptureQueriesContext(connection) as queries:
        settle_runs(config=OFF)
    assert not any(
        "policy" in query["sql"].split("WHERE")[0].lower() for query in queries if "SELECT" in query["sql"]
    )
    assert Job.objects.get(id=job.id).state == "failed"
    assert Run.objects.get().undecided_because == "flag_off"


def test_an_unreadable_attached_policy_never_becomes_the_default_policy() -> None:
    make_policy("fallback")
    make_policy("broken", rules=[{"action": "Perhaps"}])
    config = Configuration(
        retry_policy=RetryPolicyConfiguration(enabled=True, default_policy_name="fallback"),
        indexed_node_labels=("kubernetes.io/hostname",),
    )
    assert settled(failed_job(policies=("broken",)), config).state == "failed"
    assert Run.objects.get().undecided_because == "policy_unreadable"


def test_a_job_that_fails_fast_is_left_to_the_legacy_path() -> None:
    job = settled(failed_job(annotations={"armadaproject.io/failFast": "true"}))
    assert job.state == "failed" and Run.objects.get().undecided_because == "fail_fast"


def test_a_job_that_somebody_cancelled_ends_cancelled_whatever_the_policy_says() -> None:
    job = failed_job()
    Job.objects.update(cancel_requested_at=job.submitted_at, cancel_user="olga", state="cancelling")
    job = settled(job)
    assert job.state == "cancelled" and [kind for kind, _ in events_of(job)] == ["cancelled"]
    run = Run.objects.get()
    assert (run.retryable, run.undecided_because) == (None, "cancelled")


def test_a_job_grown_beyond_every_node_fails_with_that_reason() -> None:
    job = settled(failed_job(memory_bytes=800 * MEBI))
    assert (job.state, job.memory_limit_bytes, job.memory_factor) == ("failed", 800 * MEBI, 0.0)
    decision = Decision.objects.get()
    assert decision.verdict == "retry_unschedulable"
    assert (decision.memory_from_bytes, decision.memory_to_bytes) == (800 * MEBI, 1_600 * MEBI)
    assert (
        "but with memory 800Mi → 1600Mi the job fits no node"
        in decision_sentences([decision])[decision.run_id]
    )
    assert decision.reason == "retry granted, but the job grown by the rule's memory bump fits no node"


def test_growth_beyond_any_number_a_node_could_have_is_unschedulable_on_an_empty_fleet_too() -> None:
    job = failed_job(memory_bytes=2**62)
    Node.objects.all().delete()
    job = settled(job)
    assert job.state == "failed" and Decision.objects.get().verdict == "retry_unschedulable"


def test_a_fixed_amount_that_never_ends_does_not_break_a_job_without_memory() -> None:
    most = {**OOM_GROW["rules"][0], "mutate": {"resources": {"memory": {"static": "8Ei"}}}}
    make_policy("most", retryLimit=9, rules=[most])
    job = failed_job(policies=("most",), memory_bytes=None)
    for _ in range(3):
        job = settled(job)
        assert (job.state, job.memory_limit_bytes) == ("queued", None)
        make_run(job, state=RunState.FAILED)


AVOIDING = {**OOM_GROW["rules"][0], "mutate": {"affinity": {"avoidSameNode": True}}}


def test_avoiding_rules_out_the_nodes_of_all_attempted_runs_and_fails_once_none_is_left() -> None:
    make_policy("avoider", retryLimit=5, rules=[AVOIDING])
    job = settled(failed_job(policies=("avoider",)))
    assert (job.state, job.avoided_nodes) == ("queued", ["local-1"])
    assert Decision.objects.get().avoids_nodes == ["local-1"]
    make_run(job, state=RunState.FAILED, node="local-2")
    job = settled(job)
    assert job.state == "failed"
    last = Decision.objects.latest("decided_at")
    assert (last.verdict, last.reason) == (
        "retry_unschedulable",
        "retry granted, but no untried node fits the job",
    )


def test_a_node_without_the_label_cannot_be_avoided_and_bars_no_other() -> None:
    make_policy("avoider", retryLimit=5, rules=[AVOIDING])
    job = failed_job(policies=("avoider",))
    Node.objects.update(labels={})
    Run.objects.update(node_id="")
    job = settled(job)
    assert (job.state, job.avoided_nodes) == ("queued", [])


def test_an_expired_lease_spends_the_budget_and_changes_nothing_about_the_job() -> None:
    make_policy("lost", rules=[{**OOM_GROW["rules"][0], "onCategory": "internal"}])
    job = failed_job(policies=("lost",))
    Run.objects.update(state="lease_expired", category="internal", subcategory="lease-expired")
    job = settled(job)
    assert (job.state, job.memory_factor) == ("queued", 0.0)
    decision = Decision.objects.get()
    assert (decision.verdict, decision.policy_used_after, decision.memory_to_bytes) == ("retry", 1, None)
    assert Run.objects.get().retryable is True


def test_a_declined_expiry_names_the_policy_on_the_jobs_last_event() -> None:
    job = failed_job()
    RunError.objects.update(message="Lease expired")
    Run.objects.update(state="lease_expired", category="internal", subcategory="lease-expired")
    [(_, payload)] = events_of(settled(job))
    assert payload["reason"] == (
        "Lease expired and not retried by policy: no rule matched, using default action"
    )
    assert payload["retryPolicyName"] == "oom-grow"
    assert Run.objects.get().state == "lease_expired"


def returned_job(*, attempted: bool, **fields: Any) -> Job:
    job = failed_job(**fields)
    Run.objects.update(state="lease_returned", category="", attempted=attempted, exit_code=None)
    return job


def test_ten_returns_of_leases_that_were_not_attempted_cost_nothing_and_blame_no_node() -> None:
    job = returned_job(attempted=False)
    for _ in range(10):
        job = settled(job)
        assert (job.state, job.avoided_nodes) == ("queued", [])
        make_run(job, state=RunState.LEASE_RETURNED, attempted=False)
    job = settled(job)
    assert job.state == "queued" and Run.objects.count() == 11
    assert events_of(job) == [] and not Decision.objects.exists()
    assert set(Run.objects.values_list("retryable", flat=True)) == {None}


def test_an_attempted_return_goes_to_another_node_and_says_nothing_to_the_client() -> None:
    job = settled(returned_job(attempted=True))
    assert (job.state, job.avoided_nodes) == ("queued", ["local-1"])
    assert events_of(job) == []
    run = Run.objects.get()
    assert (run.retryable, run.undecided_because) == (None, "lease_return")


def test_attempted_returns_end_at_the_limit() -> None:
    job = returned_job(attempted=True)
    config = Configuration(
        max_retries=0,
        retry_policy=RetryPolicyConfiguration(enabled=True),
        indexed_node_labels=("kubernetes.io/hostname",),
    )
    job = settled(job, config)
    [(_, payload)] = events_of(job)
    assert payload["failureSubcategory"] == "max-runs-exceeded"
    assert payload["reason"].startswith(
        "Maximum number of attempts (1) reached - this job will no longer be retried"
    )
    assert Run.objects.get().retryable is None


def test_a_batch_of_five_hundred_uses_as_many_queries_as_one() -> None:
    def settle_counting(jobs: int, queue: str) -> int:
        for number in range(min(jobs, 10)):
            more_like(failed_job(queue=queue, job_set=f"set-{number}"), max(jobs // 10 - 1, 0))
        with CaptureQueriesContext(connection) as queries:
            assert settle_runs(config=ON).runs == jobs
        return len(queries)

    assert settle_counting(1, "one") == settle_counting(500, "many")


def test_a_run_that_cannot_be_settled_is_set_aside_after_three_tries_and_holds_up_nobody() -> None:
    bad, good = failed_job(), failed_job()
    # A factor no document could have carried: growing by it overflows what a decision can hold.
    Job.objects.filter(id=bad.id).update(memory_factor=float("nan"))
    for _ in range(3):
        settle_runs(config=ON)
    run = Run.objects.get(job=bad)
    assert run.settled_at is None and run.settle_tries == 3 and run.settle_error
    assert Job.objects.get(id=good.id).state == "queued"
    assert settle_runs(config=ON).runs == 0


def test_the_others_of_a_batch_with_a_run_that_cannot_be_settled_are_settled_once() -> None:
    bad, good = failed_job(), failed_job()
    Job.objects.filter(id=bad.id).update(memory_factor=float("nan"))
    settle_runs(config=ON)
    good.refresh_from_db()
    assert (good.memory_limit_bytes, good.memory_factor) == (128 * MEBI, 2.0)
    assert (good.queued_version, good.version) == (2, 2)
    assert Decision.objects.get().memory_from_bytes == 64 * MEBI


def test_whatever_a_job_does_to_the_batch_only_its_own_run_is_set_aside() -> None:
    bad, good = failed_job(), failed_job()
    Job.objects.filter(id=bad.id).update(resources=[1])
    for _ in range(3):
        settle_runs(config=ON)
    assert Run.objects.get(job=bad).settle_error.startswith("AttributeError")
    assert Job.objects.get(id=good.id).state == "queued"


def test_a_storm_in_one_queue_leaves_the_others_their_share_of_a_batch() -> None:
    for _ in range(10):
        failed_job(queue="storm")
    calm = failed_job(queue="calm")
    settle_runs(config=ON, limit=2)
    assert Job.objects.get(id=calm.id).state == "queued"


def test_where_it_storms_in_one_queue_only_batches_are_small_until_the_others_are_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_of_jobs, "_LEAST_SHARE", 3)
    monkeypatch.setattr(rows_of_jobs, "_BESIDE", 2)
    for _ in range(6):
        failed_job(queue="storm")
    calm = failed_job(queue="calm")
    first = settle_runs(config=ON)
    assert (first.runs, first.more, first.storms_elsewhere) == (2, True, True)
    assert Job.objects.get(id=calm.id).state == "queued"
    second = settle_runs(config=ON)
    assert (second.runs, second.storms_elsewhere) == (5, False)
