"""What the how-to "Switch retry policies on" claims, each sentence by the verbs themselves."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from policies.documents import policy_from_object
from scheduler.administration import attach_policies
from scheduler.config import (
    Configuration,
    ConfigurationInvalid,
    RetryPolicyConfiguration,
    configuration_from,
)
from scheduler.executors.protocol import Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.leasing import run_round
from scheduler.models import Decision, Event, Executor, Job, Run
from scheduler.models.clock import database_now
from scheduler.publishing import apply_policy
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from tests.factories import MEBI, OOM_GROW, make_executor, make_job, make_policy, make_queue
from tests.people import OLGA

pytestmark = pytest.mark.django_db

LABEL = "kubernetes.io/hostname"
OFF = Configuration(node_id_label=LABEL, indexed_node_labels=(LABEL,), max_retries=1)
ON = replace(OFF, retry_policy=RetryPolicyConfiguration(enabled=True))
FROZEN = replace(OFF, retry_policy=RetryPolicyConfiguration(enabled=True, global_max_retries=0))
MESSAGE = "Container main failed with exit code 137 because OOMKilled: \n"


@pytest.fixture(autouse=True)
def _fleet() -> None:
    make_executor("local")


def queue(*policies: str) -> str:
    return make_queue("nightly", policies=policies).name


def lease(job: Job) -> Run:
    assert run_round(pool="default", config=ON).placed == 1
    return Run.objects.filter(job=job).latest("number")


def report(run: Run, state: ReportState, config: Configuration, **fields: Any) -> None:
    record_reports(executor="local", reports=[Report(run_id=str(run.id), state=state, **fields)])
    settle_runs(config=config)


def fail(job: Job, config: Configuration, category: str = "oom") -> Job:
    """The next run of the job fails, and is settled."""
    report(lease(job), ReportState.FAILED, config, category=category, message=MESSAGE)
    return Job.objects.get(id=job.id)


def told(job: Job) -> list[str]:
    return list(Event.objects.filter(job=job).order_by("number").values_list("kind", flat=True))


def failures(job: Job) -> list[dict[str, Any]]:
    rows = Event.objects.filter(job=job, kind="failed").order_by("number")
    return [row.payload for row in rows]


def test_what_is_attached_while_policies_are_off_decides_nothing() -> None:
    apply_policy(policy=policy_from_object(OOM_GROW), actor=OLGA, config=OFF)
    name = queue()
    attach_policies(queue=name, policies=["oom-grow"], actor=OLGA)
    job = fail(make_job(name), OFF)
    assert (job.state, Decision.objects.count()) == ("failed", 0)
    assert "retryPolicyName" not in failures(job)[0]


def test_a_queue_without_a_policy_goes_on_as_before() -> None:
    make_policy("elsewhere")
    job = fail(make_job(queue()), ON)
    assert (job.state, job.runs.get().undecided_because) == ("failed", "no_policy")


def test_a_default_policy_that_does_not_exist_decides_nothing() -> None:
    ghost = replace(ON, retry_policy=replace(ON.retry_policy, default_policy_name="ghost"))
    job = fail(make_job(queue()), ghost)
    assert (job.state, job.runs.get().undecided_because) == ("failed", "policy_unreadable")


def test_a_retryable_failure_is_followed_by_a_lease() -> None:
    make_policy()
    job = fail(make_job(queue("oom-grow")), ON)
    lease(job)
    assert failures(job)[0]["retryable"] is True
    assert told(job) == ["leased", "failed", "leased"]


def test_with_policies_off_no_failure_is_retryable() -> None:
    make_policy()
    job = fail(make_job(queue("oom-grow")), OFF)
    assert [failure["retryable"] for failure in failures(job)] == [False]


def test_the_policy_that_decided_is_named_whether_it_retried_or_not() -> None:
    make_policy(retryLimit=1)
    job = make_job(queue("oom-grow"))
    fail(job, ON)
    fail(job, ON)
    named = [(failure["retryable"], failure["retryPolicyName"]) for failure in failures(job)]
    assert named == [(True, "oom-grow"), (False, "oom-grow")]


def test_a_policy_that_declines_puts_its_reason_before_the_error_of_the_run() -> None:
    make_policy(retryLimit=2)
    job = make_job(queue("oom-grow"))
    for _ in range(3):
        fail(job, ON)
    reason = failures(job)[-1]["reason"]
    assert reason.startswith("Retry policy: policy retry limit exceeded (2/2)\n\n")
    assert MESSAGE.rstrip() in reason


def test_a_lost_executor_is_told_of_and_its_job_goes_on() -> None:
    lost = {"action": "Retry", "onCategory": "internal", "onSubcategory": "lease-expired"}
    make_policy(rules=[lost])
    job = make_job(queue("oom-grow"))
    lease(job)
    Executor.objects.update(heartbeat_at=database_now() - timedelta(days=1))
    expire_leases(config=ON)
    settle_runs(config=ON)
    assert told(job) == ["leased", "leaseExpired", "failed"]
    assert [(each["reason"], each["retryable"]) for each in failures(job)] == [("Lease expired", True)]


def test_without_the_label_among_the_indexed_ones_nothing_starts() -> None:
    with pytest.raises(ConfigurationInvalid, match="Add it to the list"):
        configuration_from({"scheduling": {"retryPolicy": {"enabled": True}}})


def test_it_holds_from_the_next_failure_on_also_for_jobs_that_run_already() -> None:
    make_policy()
    job = make_job(queue("oom-grow"))
    run = lease(job)
    report(run, ReportState.RUNNING, OFF)
    report(run, ReportState.FAILED, ON, category="oom", message=MESSAGE)
    assert Job.objects.get(id=job.id).state == "queued"


def test_jobs_that_failed_before_stay_failed() -> None:
    make_policy()
    job = fail(make_job(queue("oom-grow")), OFF)
    settle_runs(config=ON)
    job.refresh_from_db()
    assert (job.state, Decision.objects.count()) == ("failed", 0)


def test_retries_use_up_no_lease_returns() -> None:
    make_policy()
    job = make_job(queue("oom-grow"))
    fail(job, ON)
    fail(job, ON)
    report(lease(job), ReportState.LEASE_RETURNED, ON, attempted=True)
    assert Job.objects.get(id=job.id).state == "queued"


def test_a_limit_of_nothing_freezes_one_policy_at_once() -> None:
    make_policy()
    job = make_job(queue("oom-grow"))
    lease(job)
    apply_policy(policy=policy_from_object({**OOM_GROW, "retryLimit": 0}), actor=OLGA, config=ON)
    run = Run.objects.get(job=job)
    report(run, ReportState.FAILED, ON, category="oom")
    assert Decision.objects.get(run=run).verdict == "fail_policy_limit"

    apply_policy(policy=policy_from_object(OOM_GROW), actor=OLGA, config=ON)
    assert fail(make_job("nightly"), ON).state == "queued"


def test_a_policy_that_is_taken_off_decides_no_more() -> None:
    make_policy()
    name = queue("oom-grow")
    attach_policies(queue=name, policies=[], actor=OLGA)
    job = fail(make_job(name), ON)
    assert (job.state, job.runs.get().undecided_because) == ("failed", "no_policy")


def test_a_global_limit_of_nothing_grants_none_and_says_so() -> None:
    make_policy()
    job = fail(make_job(queue("oom-grow")), FROZEN)
    assert job.state == "failed"
    assert Decision.objects.get(job=job).verdict == "fail_global_limit"
    assert failures(job)[0]["retryPolicyName"] == "oom-grow"
    assert "Retries are switched off" in FROZEN.warnings[0]


def test_what_was_requeued_before_runs_all_the_same() -> None:
    make_policy()
    job = fail(make_job(queue("oom-grow")), ON)
    assert run_round(pool="default", config=FROZEN).placed == 1
    report(Run.objects.filter(job=job).latest("number"), ReportState.SUCCEEDED, FROZEN)
    assert Job.objects.get(id=job.id).state == "succeeded"


def test_after_going_back_a_job_keeps_what_it_has_grown_to() -> None:
    mutate = {"affinity": {"avoidSameNode": True}, "resources": {"memory": {"factor": 2}}}
    make_policy(rules=[{"action": "Retry", "onCategory": "oom", "mutate": mutate}])
    job = fail(make_job(queue("oom-grow")), ON)
    assert run_round(pool="default", config=OFF).placed == 1
    first, second = Run.objects.filter(job=job).order_by("number")
    assert second.memory_limit_bytes == 128 * MEBI
    assert second.node != first.node


def test_what_was_decided_stays_after_going_back() -> None:
    make_policy()
    job = fail(make_job(queue("oom-grow")), ON)
    assert fail(job, OFF).state == "failed"
    assert [(d.policy_name, d.verdict) for d in Decision.objects.all()] == [("oom-grow", "retry")]
