"""Jobs of exports: the objects that lists answer with, made from plain values."""

from typing import Any

from lookout.api.v1.job_views import shown_failure
from scheduler.queries.exported import ExportedJob, ExportedRun, exported_jobs, exported_reasons, objects_in
from scheduler.queries.keyset import Listing, Place


def jobs_of(
    listing: Listing[Any], *, limit: int, cursor: str
) -> tuple[list[dict[str, Any]], list[Place], str]:
    """A stretch of the listing: the jobs as JSON objects, the place of each, and the cursor of the rest."""
    places, rest = listing.places(limit=limit, cursor=cursor)
    ids = [str(place[-1]) for place in places]
    jobs = exported_jobs(ids)
    waiting = exported_reasons(jobs, ids)
    objects = [_job(job, ids[job.turn], waiting.get(ids[job.turn], "")) for job in jobs]
    return objects, [places[job.turn] for job in jobs], rest


def _job(job: ExportedJob, job_id: str, waiting_because: str) -> dict[str, Any]:
    """Field for field what `JobView` is as JSON."""
    failure = shown_failure(job.last_failure)
    return {
        "jobId": job_id,
        "clientId": job.client_id or "",
        "queue": job.queue,
        "jobSetId": job.job_set,
        "owner": job.owner,
        "namespace": job.namespace,
        "priority": job.priority,
        "priorityClass": job.priority_class,
        "gangId": job.gang_id,
        "state": job.state,
        "stateChangedAt": job.state_changed_at,
        "submittedAt": job.submitted_at,
        "endedAt": job.ended_at,
        "cancelUser": job.cancel_user,
        "cancelReason": job.cancel_reason,
        "preemptUser": job.preempt_user,
        "preemptReason": job.preempt_reason,
        "rejectedBecause": job.rejected_because,
        "annotations": objects_in(job.annotations),
        "labels": objects_in(job.labels),
        "runCount": job.run_count,
        "resources": {
            "cpuMillicores": job.cpu_request_millicores,
            "memoryRequestBytes": job.memory_request_bytes,
            "memoryLimitBytes": job.memory_limit_bytes,
            "others": objects_in(job.resources),
        },
        "submittedMemoryBytes": job.submitted_memory_bytes,
        "avoidedNodes": job.avoided_nodes,
        "waitingBecause": waiting_because,
        "lastFailure": {"category": failure.category, "subcategory": failure.subcategory}
        if failure
        else None,
        "lastVerdict": job.last_verdict or "",
        "lastRun": _run(job.last_run) if job.last_run.run_id else None,
    }


def _run(run: ExportedRun) -> dict[str, Any]:
    return {
        "runId": run.run_id,
        "state": run.state,
        "executor": run.executor,
        "node": run.node,
        "pool": run.pool,
        "startedAt": run.started_at,
        "endedAt": run.ended_at,
        "exitCode": run.exit_code,
    }
