"""Jobs as they travel: in lists, alone, and in a job file."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from lookout.api.lists import TotalView
from lookout.api.shapes import WhenKnown
from lookout.api.v1.run_views import RunView, run_view
from policies.failures import Failure
from scheduler.models import Job, Run
from scheduler.queries.jobs import JobDetail, JobRow
from scheduler.states import JobState, RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailureView:
    """What a run failed of."""

    category: str
    subcategory: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ResourcesView:
    """What is reserved for a job now, grown by its retries."""

    cpu_millicores: int
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    others: dict[str, int]
    """Other resources by name, in whole units."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LastRunView:
    """Where a job ran last, and how that ended."""

    run_id: UUID
    state: RunState
    executor: str
    node: str
    pool: str
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobView:
    """A job. It keeps its id through every retry."""

    job_id: str
    client_id: str
    queue: str
    job_set_id: str
    owner: str
    """Who submitted it."""
    namespace: str
    priority: int
    """Smaller goes first."""
    priority_class: str
    gang_id: str
    """Jobs of one queue with the same one start together; empty for a job of its own."""
    state: JobState
    state_changed_at: datetime
    submitted_at: datetime
    ended_at: datetime | None
    cancel_user: str
    cancel_reason: str
    preempt_user: str
    """Who last asked for a run of it to give way."""
    preempt_reason: str
    rejected_because: str
    """Why it can never run."""
    annotations: dict[str, str]
    labels: dict[str, str]
    run_count: int
    resources: ResourcesView
    submitted_memory_bytes: int | None
    """Reserved memory as submitted: the limit, or else the request."""
    avoided_nodes: tuple[str, ...]
    """Values of the node id label; no later run is placed there."""
    waiting_because: str
    """Why it is not placed, while it is queued."""
    last_failure: FailureView | None
    """As its newest failed event says; null when that has no category, or there is none."""
    last_verdict: str
    """What was decided about the newest run that failed; empty when nothing was."""
    last_run: LastRunView | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobDetailView(JobView):
    """A job with its pod spec as submitted and its runs, oldest first."""

    spec: dict[str, Any]
    runs: tuple[RunView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobList:
    """Some of the jobs that were asked for."""

    jobs: tuple[JobView, ...]
    next: str | None
    """The cursor of the page after this one; null on the last."""
    total: Annotated[TotalView | None, WhenKnown()] = None
    """When it was asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobItemDocument:
    """One job of a job file."""

    pod_spec: dict[str, Any]
    """A Kubernetes pod spec. Fields that no executor honours get the job rejected, naming them."""
    priority: int = 0
    """Smaller goes first."""
    namespace: str = "default"
    client_id: str = ""
    """A second submission with the same one answers with the first job."""
    annotations: dict[str, str] = dataclasses.field(default_factory=dict)
    labels: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobFileDocument:
    """A queue, a job set, and jobs."""

    queue: str
    job_set_id: str
    jobs: tuple[JobItemDocument, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SubmittedView:
    """The job that answers for one item of a job file."""

    job_id: str
    """Empty in a dry run."""
    client_id: str
    created: bool
    """False: a job with this client id was there before, or it is a dry run."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SubmittedList:
    """One for each job of the file, in its order."""

    jobs: tuple[SubmittedView, ...]


def job_view(row: JobRow) -> JobView:
    """A job as lists show it."""
    return JobView(**_fields(row))


def job_detail_view(detail: JobDetail) -> JobDetailView:
    """A job with everything."""
    return JobDetailView(
        **_fields(detail.row),
        spec=dict(detail.pod_spec),
        runs=tuple(run_view(run, detail.sentences) for run in detail.runs),
    )


def _fields(row: JobRow) -> Mapping[str, Any]:
    job = row.job
    return {
        "job_id": job.id,
        "client_id": job.client_id or "",
        "queue": job.queue_id,
        "job_set_id": job.job_set.name,
        "owner": job.owner,
        "namespace": job.namespace,
        "priority": job.priority,
        "priority_class": job.priority_class,
        "gang_id": job.gang_id,
        "state": JobState(job.state),
        "state_changed_at": job.state_changed_at,
        "submitted_at": job.submitted_at,
        "ended_at": job.ended_at,
        "cancel_user": job.cancel_user,
        "cancel_reason": job.cancel_reason,
        "preempt_user": job.preempt_user,
        "preempt_reason": job.preempt_reason,
        "rejected_because": job.rejected_because,
        "annotations": job.annotations,
        "labels": job.labels,
        "run_count": job.run_count,
        "resources": _resources(job),
        "submitted_memory_bytes": job.submitted_memory_bytes,
        "avoided_nodes": tuple(job.avoided_nodes),
        "waiting_because": row.waiting_because,
        "last_failure": shown_failure(row.last_failure),
        "last_verdict": row.last_verdict,
        "last_run": _last_run(row.last_run),
    }


def _last_run(run: Run | None) -> LastRunView | None:
    if run is None:
        return None
    return LastRunView(
        run_id=run.id,
        state=RunState(run.state),
        executor=run.executor_id,
        node=run.node,
        pool=run.pool,
        started_at=run.started_at,
        ended_at=run.ended_at,
        exit_code=run.exit_code,
    )


def _resources(job: Job) -> ResourcesView:
    return ResourcesView(
        cpu_millicores=job.cpu_request_millicores,
        memory_request_bytes=job.memory_request_bytes,
        memory_limit_bytes=job.memory_limit_bytes,
        others=dict(job.resources),
    )


def shown_failure(failure: Failure | None) -> FailureView | None:
    """A failure as it travels; one without a category is not told."""
    if failure is None or not failure.category:
        return None
    return FailureView(category=failure.category, subcategory=failure.subcategory)
