"""Jobs in the middle of their story, made by the verbs that make them in earnest."""

from typing import Any

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.models import Job, Run
from scheduler.settling import settle_runs
from scheduler.states import JobState, RunState
from tests.factories import MEBI, make_executor, make_job, make_policy, make_queue, make_run

CONFIG = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True),
    indexed_node_labels=("kubernetes.io/hostname",),
)


def failed_run(**fields: Any) -> Run:
    """A run that ended out of memory and awaits its verdict, of a job in queue `nightly` with policy `oom-grow`."""
    make_executor()
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    job = make_job("nightly", job_set="renders")
    memory = {
        "message": "Container main reached 64Mi",
        "killed_by": "memory",
        "enforced_by": "cgroup2",
        "signal": 9,
        "memory_peak_bytes": 64 * MEBI,
    }
    return make_run(job, state=RunState.FAILED, **{**memory, **fields})


def retried_job(**fields: Any) -> Job:
    """A job whose first run failed of memory, queued again with 128Mi."""
    run = failed_run(**fields)
    settle_runs(limit=10, config=CONFIG)
    return Job.objects.get(id=run.job_id)


def succeeded_job() -> Job:
    """The same, whose second run succeeded."""
    job = retried_job()
    run = make_run(job, state=RunState.SUCCEEDED, exit_code=0)
    assert run.ended_at is not None
    job.state, job.ended_at, job.state_changed_at = JobState.SUCCEEDED, run.ended_at, run.ended_at
    job.save()
    return job
