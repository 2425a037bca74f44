"""What the database itself refuses, whoever writes: the invariants that must never break."""

from collections.abc import Callable

import pytest
from django.db import IntegrityError

from scheduler.models import Change, Decision, Event, Job, JobSet, Queue, QueuePolicy, RetryPolicyVersion, Run
from scheduler.models.clock import database_now
from scheduler.states import RunState
from tests.factories import make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db


def decide(run: Run) -> None:
    Decision.objects.create(
        run=run, job=run.job, policy_name="p", policy_version=1, verdict="retry", policy_used_before=0,
        policy_used_after=1, policy_limit=1, global_used_before=0, global_used_after=1, global_limit=1,
        decided_at=database_now(),
    )  # fmt: skip


def decide_twice() -> None:
    run = make_run(state=RunState.FAILED)
    for _ in range(2):
        decide(run)


def run_twice_at_once() -> None:
    make_run(make_run().job)


def number_a_run_twice() -> None:
    make_run(make_run(state=RunState.FAILED).job, number=1)


def make_policies_attached_twice() -> None:
    make_queue(policies=(make_policy().name,))
    QueuePolicy.objects.create(queue_id="nightly", policy_id="oom-grow", ordinal=1)


def publish_a_version_twice() -> None:
    make_policy()
    RetryPolicyVersion.objects.create(policy_name="oom-grow", version=1, document={}, author="olga")


def number_an_event_twice() -> None:
    job = make_job()
    for _ in range(2):
        Event.objects.create(job_set=job.job_set, number=1, job=job, kind="queued", created=database_now())


def use_a_client_id_twice() -> None:
    for _ in range(2):
        make_job(client_id="c")


def make_a_job_set_twice() -> None:
    job = make_job()
    JobSet.objects.create(queue=job.queue, name=job.job_set.name)


@pytest.mark.parametrize(
    ("break_it", "constraint"),
    [
        (decide_twice, "scheduler_decision_pkey"),
        (run_twice_at_once, "run_one_active_per_job"),
        (number_a_run_twice, "run_number_once_per_job"),
        (lambda: make_run(state=RunState.FAILED, ended_at=None), "run_ended_when_not_active"),
        (
            lambda: Run.objects.filter(id=make_run(state=RunState.FAILED).id).update(state="lost"),
            "run_state_known",
        ),
        (lambda: make_run(undecided_because="whim"), "run_undecided_known"),
        (lambda: Job.objects.filter(id=make_job().id).update(state="lost"), "job_state_known"),
        (lambda: make_job(state="failed", ended_at=None), "job_ended_when_terminal"),
        (lambda: make_job(memory_factor=2.0, memory_static_bytes=1), "job_grows_one_way"),
        (use_a_client_id_twice, "job_client_id_once_per_queue"),
        (make_a_job_set_twice, "job_set_once_per_queue"),
        (lambda: make_queue(priority_factor=0.5), "queue_priority_factor_at_least_1"),
        (lambda: Queue.objects.create(name=""), "queue_name_not_empty"),
        (make_policies_attached_twice, "queue_policy_once"),
        (publish_a_version_twice, "scheduler_retrypolicyversion_pkey"),
        (number_an_event_twice, "scheduler_event_pkey"),
        (lambda: Change.objects.create(actor="olga", kind="gossip", subject="x"), "change_kind_known"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_database_refuses_it(break_it: Callable[[], object], constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        break_it()
