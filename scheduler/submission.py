"""Submit jobs: rows, specs and events in one transaction, each job once however often it is sent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduler.actors import Actor
from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.gangs import Member, check_joining
from scheduler.jobfile import JobItem
from scheduler.models import Event, Job, JobSet, JobSpec, Queue
from scheduler.models.arrivals import events_of_new
from scheduler.models.bulk import insert_rows
from scheduler.models.clock import database_now
from scheduler.models.ulids import new_ulid
from scheduler.podspec import Pod
from scheduler.queries.gangs import open_gangs
from scheduler.queries.rejections import reasons_to_reject
from scheduler.queries.submittable import note_strange_classes, require_submit
from scheduler.spelling import Problems
from scheduler.states import JobState

BATCH = 5_000
"""Rows in one INSERT."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmittedJob:
    """The job that answers for one submitted item."""

    job_id: str
    client_id: str
    created: bool
    """False: a job with this client id was there before."""


@transaction.atomic
def submit_jobs(
    *,
    queue: str,
    job_set: str,
    items: Sequence[JobItem],
    actor: Actor,
    config: Configuration | None = None,
) -> list[SubmittedJob]:
    """Submit jobs to a queue, cordoned or not, and answer for each item in its order.

    A client id names one job of a queue for good: the same again, here or in a submission that races this
    one, is answered with the first job, and nothing of it changes. A job that can never run on the executors
    heard of is accepted and rejected at once, with the reason. Raises DocumentInvalid for a priority class that
    is not configured, and for members of a gang that disagree with those there or are too many.
    """
    found = require_submit(_held_queue(queue), queue, actor=actor)
    if not items:
        return []
    config = config or configuration()
    _check_classes(items, config)
    _check_gangs(items, found, config)
    jobs = _new_jobs(items, found, _job_set(found, job_set), owner=actor.name, config=config)
    _reject(jobs, items, config)
    created = _insert(jobs)
    _write_specs(jobs, items, created)
    first = _first_by_client_id(found, jobs, created)
    new = (job for job in jobs if job.id in created)
    Event.objects.append(events_of_new(new))  # last: it takes the numbers of the job set
    return [
        SubmittedJob(
            job_id=job.id if job.id in created else first[job.client_id or ""],
            client_id=job.client_id or "",
            created=job.id in created,
        )
        for job in jobs
    ]


def _check_classes(items: Sequence[JobItem], config: Configuration) -> None:
    problems = Problems()
    note_strange_classes(items, config, problems)
    problems.raise_any()


def _check_gangs(items: Sequence[JobItem], queue: Queue, config: Configuration) -> None:
    """Raises DocumentInvalid for members of gangs that disagree with those there, or would be too many."""
    joining = _joining(items, queue, config)
    if not joining:
        return
    Job.objects.hold_gangs(queue.name, joining)
    # A new statement: its snapshot is younger than the locks.
    problems = Problems()
    for gang_id, gang in open_gangs(queue.name, joining).items():
        check_joining(
            joining[gang_id],
            there=gang.members,
            said=gang.said,
            priority_class=config.class_of(gang.priority_class),
            problems=problems,
        )
    problems.raise_any()


def _joining(items: Sequence[JobItem], queue: Queue, config: Configuration) -> dict[str, list[Member]]:
    """Gang id → its members among these; those whose client id is taken are answered with the first job."""
    members = [(index, item) for index, item in enumerate(items) if item.gang.gang_id]
    client_ids = {item.client_id for _, item in members if item.client_id}
    taken = (
        set(Job.objects.filter(queue=queue, client_id__in=client_ids).values_list("client_id", flat=True))
        if client_ids
        else set()
    )
    found: dict[str, list[Member]] = defaultdict(list)
    for index, item in members:
        if item.client_id not in taken:
            priority_class = config.class_of(item.pod.priority_class)
            member = Member(path=f"jobs[{index}]", gang=item.gang, priority_class=priority_class)
            found[item.gang.gang_id].append(member)
    return found


def _held_queue(name: str) -> Queue | None:
    """The queue, kept from being deleted until the commit; submissions do not wait for each other."""
    return next(
        iter(Queue.objects.raw("SELECT * FROM scheduler_queue WHERE name = %s FOR KEY SHARE", [name])), None
    )


def _job_set(queue: Queue, name: str) -> JobSet:
    JobSet.objects.bulk_create([JobSet(queue=queue, name=name)], ignore_conflicts=True)
    return JobSet.objects.get(queue=queue, name=name)


def _new_jobs(
    items: Sequence[JobItem], queue: Queue, job_set: JobSet, *, owner: str, config: Configuration
) -> list[Job]:
    now = database_now()
    ids = sorted(new_ulid() for _ in items)  # in the order of the file, so that they go in that order
    shared = {"queue": queue, "job_set": job_set, "owner": owner}
    return [
        Job(id=job_id, **shared, **_columns(item, now, config))
        for item, job_id in zip(items, ids, strict=True)
    ]


def _columns(item: JobItem, now: datetime, config: Configuration) -> dict[str, Any]:
    return {
        **_asked_of_nodes(item.pod),
        "namespace": item.namespace,
        "priority": item.priority,
        "priority_class": config.class_of(item.pod.priority_class),
        "gang_id": item.gang.gang_id,
        "gang_cardinality": item.gang.cardinality,
        "gang_uniformity_label": item.gang.uniformity_label,
        "client_id": item.client_id or None,
        "annotations": dict(item.annotations),
        "labels": dict(item.labels),
        "state_changed_at": now,
        "submitted_at": now,
        "grace_period_seconds": item.pod.grace_period_seconds,
    }


def _asked_of_nodes(pod: Pod) -> dict[str, Any]:
    limit = pod.memory_limit_bytes
    return {
        "cpu_request_millicores": pod.cpu_request_millicores,
        "memory_request_bytes": pod.memory_request_bytes,
        "memory_limit_bytes": limit,
        "submitted_memory_bytes": pod.memory_request_bytes if limit is None else limit,
        "resources": dict(pod.resources),
        "node_selector": dict(pod.node_selector),
        "affinity": list(pod.affinity),
        "tolerations": list(pod.tolerations),
        "needed_fields": list(pod.needed_fields),
    }


def _reject(jobs: Sequence[Job], items: Sequence[JobItem], config: Configuration) -> None:
    specs = [(job, item.pod.spec) for job, item in zip(jobs, items, strict=True)]
    reasons = reasons_to_reject(specs, config=config)
    for job in jobs:
        if job.id in reasons:
            job.state = JobState.REJECTED
            job.ended_at = job.submitted_at
            job.rejected_because = reasons[job.id]


def _insert(jobs: Sequence[Job]) -> set[str]:
    """Insert the jobs whose client id is free, or that have none, and return their ids."""
    nameless = [job for job in jobs if job.client_id is None]
    insert_rows(nameless)
    named = [job for job in jobs if job.client_id is not None]
    return {job.id for job in nameless} | _insert_named(named)


def _insert_named(jobs: Sequence[Job]) -> set[str]:
    """Insert the jobs whose client id is free and return their ids.

    An insert that meets another transaction's waits for it to end; in the order of client ids no two can
    wait for each other. The statement after it sees what that transaction committed.
    """
    if not jobs:
        return set()
    ordered = sorted(jobs, key=lambda job: (job.client_id or "", job.id))
    Job.objects.bulk_create(ordered, ignore_conflicts=True, batch_size=BATCH)
    return set(Job.objects.filter(id__in=[job.id for job in ordered]).values_list("id", flat=True))


def _write_specs(jobs: Sequence[Job], items: Sequence[JobItem], created: set[str]) -> None:
    insert_rows(
        [
            JobSpec(job_id=job.id, pod_spec=item.pod.spec)
            for job, item in zip(jobs, items, strict=True)
            if job.id in created
        ]
    )


def _first_by_client_id(queue: Queue, jobs: Iterable[Job], created: set[str]) -> dict[str, str]:
    repeated = {job.client_id for job in jobs if job.id not in created and job.client_id}
    rows = Job.objects.filter(queue=queue, client_id__in=repeated).values_list("client_id", "id")
    return {client_id or "": job_id for client_id, job_id in rows}
