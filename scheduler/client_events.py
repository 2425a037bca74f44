"""What client events carry beyond jobId, jobSetId, queue and created: field names as on the wire.

Source: the model's event catalogue. The one addition is `retryPolicyName`, after the model's fields, on
failures that a policy decided about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

CAUSES = {"OOM": "OOM", "Evicted": "Evicted", "DeadlineExceeded": "DeadlineExceeded", "AppError": "Error"}
"""Reasons of an executor → causes of the `failed` event."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a run is, in the words of the wire: a cluster is an executor."""

    run_id: str
    executor: str
    node: str
    pool: str
    pod_name: str
    namespace: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PodFailure:
    """What an executor reported of the end of a run."""

    reason: str
    containers: Sequence[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AsSubmitted:
    """A job as it was when it came."""

    job_id: str
    client_id: str
    job_set: str
    queue: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: str
    priority: int
    priority_class: str
    submitted_at: datetime


def wire_time(moment: datetime) -> str:
    """A moment of UTC as events have it."""
    return moment.isoformat().replace("+00:00", "Z")


def pod_name_of(job_id: str) -> str:
    """The name of the remains of every run of the job."""
    return f"armada-{job_id}-0"


MOST_TOLD = 4_096
"""Characters of labels and annotations, names and values together, that travel with an event."""


def submitted(job: AsSubmitted) -> dict[str, Any]:
    """A job came. What every reader of the job set would have to take with it is read by the job's id instead: the pod
    spec, and annotations, then labels, that go beyond MOST_TOLD.
    """
    labels = _within(job.labels, MOST_TOLD)
    annotations = _within(job.annotations, MOST_TOLD - _size(labels))
    told = {
        "id": job.job_id,
        "clientId": job.client_id,
        "jobSetId": job.job_set,
        "queue": job.queue,
        "namespace": job.namespace,
        "labels": labels,
        "annotations": annotations,
        "owner": job.owner,
        "priority": job.priority,
        "priorityClassName": job.priority_class,
        "created": wire_time(job.submitted_at),
    }
    return {"job": told}


def _within(words: Mapping[str, str], most: int) -> dict[str, str]:
    """All of them, or none where they are more."""
    return dict(words) if _size(words) <= most else {}


def _size(words: Mapping[str, str]) -> int:
    return sum(len(name) + len(word) for name, word in words.items())


def leased(*, executor: str, pool: str) -> dict[str, Any]:
    """A run was placed."""
    return {"clusterId": executor, "pool": pool}


def pending(place: Place) -> dict[str, Any]:
    """The executor accepted the lease."""
    return {
        "clusterId": place.executor,
        "kubernetesId": place.run_id,
        "podNumber": 0,
        "podName": place.pod_name,
        "podNamespace": place.namespace,
        "pool": place.pool,
    }


def running(place: Place) -> dict[str, Any]:
    """The run's processes are at work."""
    return {**pending(place), "nodeName": place.node}


def succeeded(place: Place) -> dict[str, Any]:
    """The run ended well, and the job with it."""
    return {
        "clusterId": place.executor,
        "kubernetesId": place.run_id,
        "nodeName": place.node,
        "podNumber": 0,
        "podName": place.pod_name,
        "podNamespace": place.namespace,
    }


def lease_returned(place: Place, *, reason: str, attempted: bool) -> dict[str, Any]:
    """The executor gave the lease back."""
    return {
        "clusterId": place.executor,
        "reason": reason,
        "kubernetesId": place.run_id,
        "podNumber": 0,
        "runAttempted": attempted,
    }


def failed(
    *,
    reason: str,
    category: str,
    subcategory: str,
    retryable: bool,
    policy: str = "",
    place: Place | None = None,
    pod_failure: PodFailure | None = None,
) -> dict[str, Any]:
    """The job failed: for good, or to run again when `retryable`.

    Pod fields are there only when the executor's own error is what ends the run.
    """
    payload: dict[str, Any] = {}
    if place is not None and pod_failure is not None:
        payload |= {
            **succeeded(place),
            "cause": CAUSES.get(pod_failure.reason, "Error"),
            "containerStatuses": [_container_status(container) for container in pod_failure.containers],
        }
    payload |= {
        "reason": reason,
        "failureCategory": category,
        "failureSubcategory": subcategory,
        "retryable": retryable,
    }
    return payload | {"retryPolicyName": policy} if policy else payload


def rejected(reason: str) -> dict[str, Any]:
    """The job can never run; it failed without a run."""
    payload = failed(reason=reason, category="internal", subcategory="job-rejected", retryable=False)
    return {"cause": "Rejected", **payload}


def cancelling(requestor: str) -> dict[str, Any]:
    """Somebody asked for the job to end."""
    return {"requestor": requestor}


cancelled = cancelling


def preempting(requestor: str, *, reason: str) -> dict[str, Any]:
    """Somebody asked for the job's run to give way."""
    return {"requestor": requestor, "reason": reason}


def preempted(
    run_id: str, *, reason: str, preempting_job_id: str = "", requestor: str = ""
) -> dict[str, Any]:
    """The run gave way: to the job that is named, or because somebody asked for it."""
    return {
        "runId": run_id,
        "reason": reason,
        "preemptingJobId": preempting_job_id,
        "requestor": requestor,
    }


def reprioritizing(new_priority: int, *, requestor: str) -> dict[str, Any]:
    """Somebody asked for another priority."""
    return {"newPriority": new_priority, "requestor": requestor}


reprioritized = reprioritizing


_CONTAINER_CAUSES = {"OOMKilled": "OOM", "Evicted": "Evicted", "DeadlineExceeded": "DeadlineExceeded"}


def _container_status(container: dict[str, Any]) -> dict[str, Any]:
    reason = container.get("reason", "")
    return {
        "name": container.get("name", ""),
        "exitCode": container.get("exitCode"),
        "message": container.get("message", ""),
        "reason": reason,
        "cause": _CONTAINER_CAUSES.get(reason, "Error"),
    }
