"""Jobs as exports write them: plain values in one statement, since there may be millions of them."""

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from django.db import connection

from policies.failures import Failure
from scheduler.models import Job
from scheduler.models.bulk import among, uuid_array
from scheduler.models.ulids import uuid_of
from scheduler.queries.failures import REJECTED, RETURNED_TOO_OFTEN
from scheduler.queries.waiting import reasons_for_waiting
from scheduler.states import FAILED_RUN_STATES, JobState, RunState


def _wire(moment: str) -> str:
    """A time as it travels."""
    return (
        f"""replace(to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000', '')"""
    )


_FAILED = ", ".join(f"'{state}'" for state in sorted(FAILED_RUN_STATES))
_READ = f"""
    SELECT asked.turn - 1, j.client_id, j.queue_id, s.name, j.owner, j.namespace, j.priority, j.priority_class, j.gang_id,
           j.state, {_wire("j.state_changed_at")}, {_wire("j.submitted_at")}, {_wire("j.ended_at")},
           j.cancel_user, j.cancel_reason, j.preempt_user, j.preempt_reason, j.rejected_because,
           j.annotations::text, j.labels::text, j.run_count, j.cpu_request_millicores, j.memory_request_bytes,
           j.memory_limit_bytes, j.resources::text, j.submitted_memory_bytes, j.avoided_nodes,
           last.id::text, last.state, last.executor_id, last.node, last.pool, {_wire("last.started_at")},
           {_wire("last.ended_at")}, last.exit_code, failed.category, failed.subcategory, failed.verdict
      FROM unnest(%s::uuid[]) WITH ORDINALITY AS asked(id, turn)
      JOIN scheduler_job j ON j.id = asked.id
      JOIN scheduler_jobset s ON s.id = j.job_set_id
      LEFT JOIN scheduler_run last ON last.job_id = j.id AND last.number = j.run_count
      LEFT JOIN LATERAL (
           SELECT r.category, r.subcategory, d.verdict
             FROM scheduler_run r LEFT JOIN scheduler_decision d ON d.run_id = r.id
            WHERE r.job_id = j.id AND r.state IN ({_FAILED}) ORDER BY r.number DESC LIMIT 1) failed ON true
     ORDER BY asked.turn
"""  # noqa: S608 - states are words of ours


class ExportedRun(NamedTuple):
    """A job's last run."""

    run_id: str | None
    """None for a job that has had none."""
    state: str
    executor: str
    node: str
    pool: str
    started_at: str | None
    ended_at: str | None
    exit_code: int | None


class ExportedJob(NamedTuple):
    """What is written of a job; times as they travel."""

    turn: int
    """Which of the ids that were asked for."""
    client_id: str | None
    queue: str
    job_set: str
    owner: str
    namespace: str
    priority: int
    priority_class: str
    gang_id: str
    state: str
    state_changed_at: str
    submitted_at: str
    ended_at: str | None
    cancel_user: str
    cancel_reason: str
    preempt_user: str
    preempt_reason: str
    rejected_because: str
    annotations: str
    """As JSON, like labels and resources."""
    labels: str
    run_count: int
    cpu_request_millicores: int
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    resources: str
    submitted_memory_bytes: int | None
    avoided_nodes: Sequence[str]
    last_run: ExportedRun
    failed_of: tuple[str | None, str | None]
    """What its newest failed run failed of; of nothing where none failed."""
    last_verdict: str | None

    @property
    def last_failure(self) -> Failure | None:
        """What it failed of last; its own end may say so."""
        if self.state == JobState.REJECTED:
            return REJECTED
        if self.state == JobState.FAILED and self.last_run.state == RunState.LEASE_RETURNED:
            return RETURNED_TOO_OFTEN
        category, subcategory = self.failed_of
        return Failure(category=category, subcategory=subcategory or "") if category else None


def exported_jobs(ids: Collection[str]) -> list[ExportedJob]:
    """The jobs of these ids, in their order. One that is gone is left out."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [uuid_array(str(uuid_of(job_id)) for job_id in ids)])
        rows = cursor.fetchall()
    return [_exported(row) for row in rows]


def exported_reasons(jobs: Collection[ExportedJob], ids: Sequence[str]) -> dict[str, str]:
    """Job id → why it waits, for those that are queued."""
    queued = [uuid_of(ids[job.turn]) for job in jobs if job.state == JobState.QUEUED]
    return reasons_for_waiting(Job.objects.filter(id__in=among(queued))) if queued else {}


def _exported(row: Sequence[Any]) -> ExportedJob:
    *job, category, subcategory, verdict = row
    own, run = job[: -len(ExportedRun._fields)], job[-len(ExportedRun._fields) :]
    return ExportedJob._make([*own, ExportedRun._make(run), (category, subcategory), verdict])


def objects_in(text: str) -> dict[str, Any]:
    """What a column of JSON holds; mostly nothing."""
    found: dict[str, Any] = {} if text == "{}" else json.loads(text)
    return found
