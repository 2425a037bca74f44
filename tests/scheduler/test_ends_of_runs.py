"""Ends with a way of their own: deadlines, failed pod checks, returned and expired leases, as jobs and clients see them."""

from datetime import timedelta
from typing import Any

import pytest

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import KilledBy, Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.models import Decision, Event, Executor, Job, Run
from scheduler.models.clock import database_now
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

LABEL = "kubernetes.io/hostname"
CONFIG = Configuration(retry_policy=RetryPolicyConfiguration(enabled=True), indexed_node_labels=(LABEL,))
NEVER_AGAIN: dict[str, Any] = {"defaultAction": "Fail", "rules": []}
ALWAYS_AGAIN: dict[str, Any] = {"defaultAction": "Retry", "retryLimit": 3, "rules": []}


@pytest.fixture
def run() -> Run:
    """A run of a queue whose policy retries nothing."""
    make_policy("never", **NEVER_AGAIN)
    make_queue("nightly", policies=("never",))
    return make_run(make_job("nightly"), executor=make_executor())


def ended(run: Run, state: ReportState, *, config: Configuration = CONFIG, **fields: Any) -> Job:
    record_reports(executor="local", reports=[Report(run_id=str(run.id), state=state, **fields)])
    settle_runs(config=config)
    run.refresh_from_db()
    return Job.objects.get(id=run.job_id)


def last_event(job: Job) -> Event:
    found = Event.objects.filter(job=job).order_by("number").last()
    assert found is not None
    return found


@pytest.mark.parametrize("enabled", [True, False])
def test_a_run_past_its_deadline_fails_with_that_cause(enabled: bool) -> None:
    config = Configuration(
        retry_policy=RetryPolicyConfiguration(enabled=enabled), indexed_node_labels=(LABEL,)
    )
    run = make_run(make_job(), executor=make_executor())
    told = {"reason": "DeadlineExceeded", "killed_by": KilledBy.DEADLINE, "exit_code": 143}
    job = ended(run, ReportState.FAILED, config=config, **told)
    assert (job.state, run.killed_by) == ("failed", "deadline")
    assert (last_event(job).kind, last_event(job).payload["cause"]) == ("failed", "DeadlineExceeded")


def test_a_failed_pod_check_gives_the_lease_back_whatever_the_category_and_the_policy_say(run: Run) -> None:
    job = ended(run, ReportState.LEASE_RETURNED, category="oom", message="image gone", attempted=True)
    assert (run.state, run.category, run.undecided_because) == ("lease_returned", "oom", "lease_return")
    assert (job.state, job.avoided_nodes, job.queued_version) == ("queued", ["local-1"], 2)
    assert not Decision.objects.exists()
    assert (last_event(job).kind, last_event(job).payload["reason"]) == ("leaseReturned", "image gone")


def test_a_lease_that_was_returned_untried_costs_nothing_and_avoids_nothing(run: Run) -> None:
    for _ in range(6):
        job = ended(run, ReportState.LEASE_RETURNED, message="agent stopped", attempted=False)
        assert (job.state, job.avoided_nodes) == ("queued", [])
        run = make_run(job)


def test_tried_leases_are_returned_until_there_are_too_many(run: Run) -> None:
    make_executor("other", nodes=8)
    job = run.job
    for number in range(1, CONFIG.attempt_limit + 1):
        Run.objects.filter(id=run.id).update(node=f"other-{number}", node_id=f"other-{number}")
        job = ended(run, ReportState.LEASE_RETURNED, message="disk full", attempted=True)
        if job.state == "queued":
            run = make_run(job, executor=Executor.objects.get(name="local"))
    assert (job.state, job.run_count) == ("failed", CONFIG.attempt_limit)
    assert last_event(job).payload["reason"] == (
        f"Maximum number of attempts ({CONFIG.attempt_limit}) reached - this job will no longer be retried"
        "\n\nFinal run error:\ndisk full"
    )


@pytest.mark.parametrize("state", [RunState.LEASED, RunState.PENDING, RunState.RUNNING])
def test_a_lease_that_expires_is_a_failure_the_policy_decides_about(state: RunState) -> None:
    make_policy("always", **ALWAYS_AGAIN)
    make_queue("nightly", policies=("always",))
    run = make_run(make_job("nightly"), executor=make_executor(), state=state)
    Executor.objects.update(
        heartbeat_at=database_now() - timedelta(seconds=CONFIG.executor_timeout_seconds + 1)
    )
    assert expire_leases(config=CONFIG) == 1
    settle_runs(config=CONFIG)
    job = Job.objects.get(id=run.job_id)
    assert (job.state, job.avoided_nodes) == ("queued", [])
    assert [event.kind for event in Event.objects.filter(job=job).order_by("number")] == [
        "leaseExpired",
        "failed",
    ]
    assert last_event(job).payload["retryable"] is True
    assert Decision.objects.get(job=job).verdict == "retry"


def test_an_executor_heard_of_in_time_loses_no_lease(run: Run) -> None:
    assert expire_leases(config=CONFIG) == 0
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
