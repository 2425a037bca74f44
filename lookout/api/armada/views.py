"""Jobs, runs and specs in the shapes of Armada's Lookout. What is null there is left out."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler.models import Run, RunError
from scheduler.queries.jobs import JobDetail, JobRow
from scheduler.states import JobState, RunState

_JOB_STATES = {state: state.upper() for state in JobState} | {JobState.CANCELLING: "RUNNING"}
_RUN_STATES = {state: f"RUN_{state.upper()}" for state in RunState}


def state_shown(state: str) -> str:
    """A job's state, as it is called there."""
    return _JOB_STATES[JobState(state)]


def job_shown(row: JobRow, now: datetime) -> dict[str, Any]:
    """A job of the list with its runs, oldest first."""
    job, last = row.job, row.last_run
    return _without_null({
        "jobId": job.id,
        "queue": job.queue_id,
        "owner": job.owner,
        "namespace": job.namespace,
        "jobSet": job.job_set.name,
        "cpu": job.cpu_request_millicores,
        "memory": job.memory_limit_bytes or job.memory_request_bytes or 0,
        "ephemeralStorage": job.resources.get("ephemeral-storage", 0),
        "gpu": job.resources.get("nvidia.com/gpu", 0),
        "priority": job.priority,
        "priorityClass": job.priority_class or None,
        "submitted": job.submitted_at,
        "cancelled": job.ended_at if job.state == JobState.CANCELLED else None,
        "state": state_shown(job.state),
        "lastTransitionTime": job.state_changed_at,
        "lastActiveRunId": last.id if last else None,
        "duplicate": False,
        "annotations": job.annotations,
        "runs": [run_shown(run) for run in row.runs],
        "cancelReason": job.cancel_reason or None,
        "cancelUser": job.cancel_user or None,
        "node": last.node if last else None,
        "cluster": last.executor_id if last else "",
        "pool": last.pool if last else None,
        "exitCode": last.exit_code if last else None,
        "runtimeSeconds": _seconds(last, now),
    })  # fmt: skip


def run_shown(run: Run) -> dict[str, Any]:
    """A run of a job."""
    return _without_null({
        "runId": run.id,
        "cluster": run.executor_id,
        "node": run.node,
        "leased": run.leased_at,
        "pending": run.pending_at,
        "started": run.started_at,
        "finished": run.ended_at,
        "jobRunState": _RUN_STATES[RunState(run.state)],
        "exitCode": run.exit_code,
        "pool": run.pool,
        "ingressAddresses": {},
        "failureCategory": run.category or None,
        "failureSubcategory": run.subcategory or None,
    })  # fmt: skip


def spec_shown(detail: JobDetail) -> dict[str, Any]:
    """A job as it was submitted."""
    job = detail.job
    return _without_null({
        "id": job.id,
        "clientId": job.client_id,
        "queue": job.queue_id,
        "jobSetId": job.job_set.name,
        "namespace": job.namespace,
        "owner": job.owner,
        "priority": job.priority,
        "labels": job.labels,
        "annotations": job.annotations,
        "podSpec": detail.pod_spec,
        "created": job.submitted_at,
    })  # fmt: skip


def error_of_job(detail: JobDetail) -> str:
    """Why it was rejected, or failed: of the last run that failed, or else of the last one, such as a returned lease.

    Empty for every other job.
    """
    job, row = detail.job, detail.row
    if job.state == JobState.REJECTED:
        return job.rejected_because
    ended = row.last_failed_run or row.last_run
    return error_of_run(ended) if ended and job.state == JobState.FAILED else ""


def error_of_run(run: Run) -> str:
    """The text of its error, or nothing."""
    error: RunError | None = getattr(run, "error", None)
    return error.message if error else ""


def debug_of_run(run: Run) -> str:
    """How each container ended, and what the executor warned of, a line each."""
    error: RunError | None = getattr(run, "error", None)
    if error is None:
        return ""
    return "\n".join([*map(_container, error.containers), *error.warnings])


def termination_reason(run: Run) -> str:
    """Why the scheduler ended it, as JSON; empty where something else did."""
    return json.dumps({"preempted": error_of_run(run)}) if run.state == RunState.PREEMPTED else ""


def _container(container: Mapping[str, Any]) -> str:
    told = [f"exit code {container['exitCode']}"] if container.get("exitCode") is not None else []
    told += [str(container[name]) for name in ("reason", "message") if container.get(name)]
    return f"container {container.get('name', '')}: {', '.join(told)}"


def _seconds(run: Run | None, now: datetime) -> int:
    if run is None or run.started_at is None:
        return 0
    return max(int(((run.ended_at or now) - run.started_at).total_seconds()), 0)


def _without_null(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
