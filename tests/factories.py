"""Factories: rows for tests, as plain functions with sensible defaults. Every default can be overridden by name."""

from copy import deepcopy
from datetime import datetime
from typing import Any

from django.db.models import Model

from scheduler.models import (
    Executor,
    Job,
    JobSet,
    JobSpec,
    Node,
    Pool,
    Queue,
    QueuePolicy,
    RetryPolicy,
    RetryPolicyVersion,
    Run,
    RunError,
)
from scheduler.models.clock import database_now
from scheduler.states import JobState, RunState

MEBI = 1 << 20

OOM_GROW: dict[str, Any] = {
    "apiVersion": "armadaproject.io/v1beta1",
    "kind": "RetryPolicy",
    "name": "oom-grow",
    "retryLimit": 2,
    "defaultAction": "Fail",
    "rules": [{"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2}}}}],
}

POD_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "containers": [
        {
            "name": "main",
            "image": "busybox",
            "command": ["/bin/sh", "-c", "true"],
            "resources": {
                "requests": {"cpu": "100m", "memory": "64Mi"},
                "limits": {"cpu": "100m", "memory": "64Mi"},
            },
        }
    ],
}


def make_policy(
    name: str = "oom-grow", *, author: str = "olga", note: str = "", **fields: Any
) -> RetryPolicy:
    """A published policy; fields replace those of the document (`retryLimit=3`, `rules=[…]`).

    For a name that exists it publishes the next version.
    """
    document = {**deepcopy(OOM_GROW), "name": name, **fields}
    policy, created = RetryPolicy.objects.get_or_create(name=name)
    if not created:
        policy.version += 1
        policy.save()
    RetryPolicyVersion.objects.create(
        policy_name=name, version=policy.version, document=document, note=note, author=author
    )
    return policy


def make_queue(name: str = "nightly", *, policies: tuple[str, ...] = (), **fields: Any) -> Queue:
    """A queue, Alice's unless told otherwise, with the named policies attached in order (they must exist)."""
    queue = Queue.objects.create(name=name, **{"owners": ["alice"], **fields})
    QueuePolicy.objects.bulk_create(
        QueuePolicy(queue=queue, policy_id=policy, ordinal=ordinal) for ordinal, policy in enumerate(policies)
    )
    return queue


def make_job(
    queue: Queue | str | None = None,
    *,
    job_set: str = "set",
    memory_bytes: int | None = 64 * MEBI,
    pod_spec: dict[str, Any] | None = None,
    **fields: Any,
) -> Job:
    """A queued job with its spec, in a queue that is made when it does not exist. Writes no events."""
    queue = _queue(queue)
    now: datetime = fields.pop("submitted_at", None) or database_now()
    state = JobState(fields.pop("state", JobState.QUEUED))
    defaults: dict[str, Any] = {
        "job_set": JobSet.objects.get_or_create(queue=queue, name=job_set)[0],
        "owner": "alice",
        "state": state,
        "state_changed_at": now,
        "submitted_at": now,
        "ended_at": now if state.is_terminal else None,
        "cpu_request_millicores": 100,
        "memory_request_bytes": memory_bytes,
        "memory_limit_bytes": memory_bytes,
        "submitted_memory_bytes": memory_bytes,
    }
    job = Job.objects.create(queue=queue, **{**defaults, **fields})
    JobSpec.objects.create(job=job, pod_spec=pod_spec or _pod_spec(memory_bytes))
    return job


def make_run(
    job: Job | None = None,
    *,
    executor: Executor | None = None,
    state: RunState = RunState.RUNNING,
    message: str = "",
    **fields: Any,
) -> Run:
    """The next run of a job, on the first node of an executor. An active run makes the job leased, pending or running.

    An ended one leaves the job running and awaits settling; failed it is of category `oom` and has an error.
    """
    job = job or make_job()
    executor = executor or Executor.objects.first() or make_executor()
    now = database_now()
    node = fields.pop("node", f"{executor.name}-1")
    defaults: dict[str, Any] = {
        "queue_id": job.queue_id,
        "job_submitted_at": job.submitted_at,
        "number": job.run_count + 1,
        "node": node,
        "node_id": node,
        "pool": executor.pool_id,
        "cpu_request_millicores": job.cpu_request_millicores,
        "memory_request_bytes": job.memory_request_bytes,
        "memory_limit_bytes": job.memory_limit_bytes,
        "memory_factor": job.memory_factor,
        "memory_static_bytes": job.memory_static_bytes,
        "leased_at": now,
        **_times(state, now),
    }
    run = Run.objects.create(job=job, executor=executor, state=state, **{**defaults, **fields})
    if state is RunState.FAILED:
        RunError.objects.create(run=run, message=message or "Container main failed", reason="OOM")
    job.refresh_from_db(
        fields=["last_category", "last_subcategory"]
    )  # the database notes what a job failed of
    job.run_count = run.number
    job.last_executor, job.last_node, job.last_pool = run.executor_id, run.node, run.pool
    if not JobState(job.state).is_terminal:
        job.state = JobState(state) if state.is_active else JobState.RUNNING
    job.save()
    return run


def more_like(job: Job, count: int) -> list[Job]:
    """So many more jobs as this one, each with runs and errors as its: for tests of many, in four statements."""
    spec, runs = job.spec, list(job.runs.order_by("number"))
    errors = list(RunError.objects.filter(run__in=runs))
    jobs = Job.objects.bulk_create(Job(**_fields_of(job)) for _ in range(count))
    JobSpec.objects.bulk_create(JobSpec(**_fields_of(spec), job=each) for each in jobs)
    copied = [(Run(**_fields_of(run, "job_id"), job=each), run) for each in jobs for run in runs]
    Run.objects.bulk_create(run for run, _ in copied)
    RunError.objects.bulk_create(
        RunError(**_fields_of(error), run=run)
        for run, original in copied
        for error in errors
        if error.run_id == original.id
    )
    return jobs


def _fields_of(row: Model, *but: str) -> dict[str, Any]:
    """Everything but its key."""
    fields = [field for field in row._meta.concrete_fields if not field.primary_key]
    return {field.attname: getattr(row, field.attname) for field in fields if field.attname not in but}


def make_executor(name: str = "local", *, nodes: int = 2, pool: str = "default", **fields: Any) -> Executor:
    """An executor heard of just now, with nodes `<name>-1`…, that deletes the remains of category `oom`."""
    defaults: dict[str, Any] = {
        "pool": Pool.objects.get_or_create(name=pool)[0],
        "heartbeat_at": database_now(),
        "categories": [{"name": "oom", "disposition": "Delete"}],
        "tracked_node_labels": ["kubernetes.io/hostname"],
        "honours": HONOURED,
    }
    executor = Executor.objects.create(name=name, **{**defaults, **fields})
    for number in range(1, nodes + 1):
        make_node(executor, name=f"{name}-{number}")
    return executor


def make_node(executor: Executor | None = None, *, name: str = "", **fields: Any) -> Node:
    """A schedulable node of 2 cores and 1 GiB, labelled with its name."""
    executor = executor or make_executor(nodes=0)
    name = name or f"{executor.name}-{executor.nodes.count() + 1}"
    defaults: dict[str, Any] = {
        "labels": {"kubernetes.io/hostname": name},
        "cpu_millicores": 2_000,
        "memory_bytes": 1024 * MEBI,
        "reported_at": database_now(),
    }
    return Node.objects.create(executor=executor, name=name, **{**defaults, **fields})


HONOURED = [
    "spec.activeDeadlineSeconds",
    "spec.containers",
    "spec.initContainers",
    "spec.restartPolicy",
    "spec.terminationGracePeriodSeconds",
    "spec.volumes",
]
"""Everything a job of the factories asks for."""


def _queue(queue: Queue | str | None) -> Queue:
    if isinstance(queue, Queue):
        return queue
    name = queue or "nightly"
    return Queue.objects.filter(name=name).first() or make_queue(name)


def _pod_spec(memory_bytes: int | None) -> dict[str, Any]:
    spec = deepcopy(POD_SPEC)
    for amounts in spec["containers"][0]["resources"].values():
        if memory_bytes is None:
            del amounts["memory"]
        else:
            amounts["memory"] = str(memory_bytes)
    return spec


def _times(state: RunState, now: datetime) -> dict[str, Any]:
    times: dict[str, Any] = {}
    if state is not RunState.LEASED:
        times["pending_at"] = now
    if state not in (RunState.LEASED, RunState.PENDING, RunState.LEASE_RETURNED):
        times["started_at"] = now
    if not state.is_active:
        times |= {"ended_at": now, "recorded_at": now}
    if state is RunState.FAILED:
        times |= {"attempted": True, "exit_code": 137, "category": "oom"}
    if state is RunState.LEASE_EXPIRED:
        times |= {"attempted": True, "category": "internal", "subcategory": "lease-expired"}
    return times
