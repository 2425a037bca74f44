"""Record what executors say: heartbeats, and reports about their runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from scheduler import client_events
from scheduler.executors.protocol import Outcome, Report, ReportOutcome, ReportState
from scheduler.fingerprint import fingerprint
from scheduler.models import Event, Job, Run, RunError, RunOutput
from scheduler.models.bulk import among, insert_rows, update_rows
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.preemption import Preemption, asked_to_give_way, preempt
from scheduler.models.runs import MAX_REASON_LENGTH
from scheduler.states import EventKind, JobState, RunState, UndecidedBecause

PROGRESS_FIELDS = ("state", "pending_at", "started_at")
RUN_FIELDS = (
    *PROGRESS_FIELDS, "ended_at", "recorded_at", "attempted", "exit_code", "signal",
    "category", "subcategory", "memory_peak_bytes", "killed_by", "enforced_by", "core_seconds", "fingerprint",
    "settled_at", "undecided_because",
)  # fmt: skip
JOB_FIELDS = ("state", "state_changed_at", "ended_at", "version", "queued_version")
# What is read of them; the rest of a job or run plays no part here, and reading it would be half of the work.
_OF_JOBS = (
    *JOB_FIELDS, "job_set_id", "namespace", "cancel_requested_at", "cancel_user", "preempt_requested_at",
    "preempt_user", "preempt_reason",
)  # fmt: skip
_OF_RUNS = (
    *RUN_FIELDS, "job_id", "executor_id", "node", "pool", "leased_at", "cpu_request_millicores",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What became of a batch of reports."""

    outcomes: list[ReportOutcome]
    any_to_settle: bool
    """Some run now awaits settling."""
    any_room: bool
    """Some node has room it had not before, or some job waits again."""


@transaction.atomic
def record_reports(*, executor: str, reports: Sequence[Report], requeue_preempted: bool = False) -> Recorded:
    """Write what an executor says of its runs. The same report again changes nothing.

    Reports may be late and out of order: a run that has ended stays as it ended. Each is answered with
    `recorded`, `unchanged`, or `refused` and why; a refused one does not hold up the others. A run that ended
    because somebody asked it to give way ends its job as preempted, or has it wait again if that is how it is set.
    """
    runs = _lock_runs(reports)
    batch = _Batch(now=database_now(), requeue_preempted=requeue_preempted)
    outcomes = [_record(report, runs.get(report.run_id), executor, batch) for report in reports]
    batch.write()
    ended = [run for run in batch.runs.values() if run.ended_at is not None]
    return Recorded(
        outcomes=outcomes, any_to_settle=any(run.settled_at is None for run in ended), any_room=bool(ended)
    )


def _lock_runs(reports: Sequence[Report]) -> dict[str, Run]:
    """The runs reported about, their jobs locked first, in id order."""
    ids = sorted({run_id for report in reports if (run_id := _uuid(report.run_id))})
    jobs = Run.objects.filter(id__in=among(ids)).values("job_id")
    locked = {
        job.id: job
        for job in Job.objects.filter(id__in=jobs)
        .order_by("id")
        .select_for_update(no_key=True)
        .only(*_OF_JOBS)
    }
    # A new statement: its snapshot is younger than the locks.
    found = Run.objects.filter(id__in=among(ids)).only(*_OF_RUNS)
    runs = [run for run in found if run.job_id in locked]
    for run in runs:
        run.job = locked[run.job_id]
    return {str(run.id): run for run in runs}


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@dataclass(kw_only=True, slots=True)
class _Batch:
    """What a batch of reports changes, gathered before anything is written."""

    now: datetime
    requeue_preempted: bool
    runs: dict[UUID, Run] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    errors: list[RunError] = field(default_factory=list)
    outputs: list[RunOutput] = field(default_factory=list)
    events: list[NewEvent] = field(default_factory=list)

    def changed(self, run: Run) -> None:
        self.runs[run.id] = run

    def move(self, job: Job, state: JobState, at: datetime) -> None:
        """Bring the job to the state; one that is to be cancelled stays so until it has ended."""
        if job.state == JobState.CANCELLING and not state.is_terminal:
            return
        job.state, job.state_changed_at = state, at
        job.version += 1
        job.ended_at = at if state.is_terminal else None
        self.jobs[job.id] = job

    def tell(self, run: Run, kind: EventKind, payload: dict[str, Any], at: datetime) -> None:
        self.events.append(
            NewEvent(
                job_set_id=run.job.job_set_id,
                job_id=run.job_id,
                run_id=run.id,
                kind=kind,
                created=at,
                payload=payload,
            )
        )

    def write(self) -> None:
        update_rows([run for run in self.runs.values() if run.ended_at is None], PROGRESS_FIELDS)
        update_rows([run for run in self.runs.values() if run.ended_at is not None], RUN_FIELDS)
        update_rows(list(self.jobs.values()), JOB_FIELDS)
        insert_rows(self.errors)
        insert_rows(self.outputs)
        Event.objects.append(self.events)


def _record(report: Report, run: Run | None, executor: str, batch: _Batch) -> ReportOutcome:
    if run is None:
        return _refused(report, f"There is no run {report.run_id[:64]}.")
    if run.executor_id != executor:
        return _refused(report, f"Run {run.id} belongs to executor '{run.executor_id}', not to '{executor}'.")
    if run.ended_at is not None:
        return ReportOutcome(run_id=report.run_id, outcome=Outcome.UNCHANGED)
    at = _moment(report, run, batch.now)
    changed = _RECORDERS[report.state](report, run, at, batch)
    return ReportOutcome(run_id=report.run_id, outcome=Outcome.RECORDED if changed else Outcome.UNCHANGED)


def _refused(report: Report, why: str) -> ReportOutcome:
    return ReportOutcome(run_id=report.run_id, outcome=Outcome.REFUSED, why=why)


def _moment(report: Report, run: Run, now: datetime) -> datetime:
    """When it happened by our clock: never after now, never before the lease."""
    happened = now - timedelta(seconds=max(0.0, report.age_seconds)) if report.age_seconds < 1e9 else now
    return min(now, max(happened, run.started_at or run.pending_at or run.leased_at))


def _record_pending(report: Report, run: Run, at: datetime, batch: _Batch) -> bool:
    if run.state != RunState.LEASED:
        return False
    run.state, run.pending_at = RunState.PENDING, at
    batch.changed(run)
    batch.move(run.job, JobState.PENDING, at)
    batch.tell(run, EventKind.PENDING, client_events.pending(run.place()), at)
    return True


def _record_running(report: Report, run: Run, at: datetime, batch: _Batch) -> bool:
    if run.state == RunState.RUNNING:
        return False
    _record_pending(report, run, at, batch)
    run.state, run.started_at = RunState.RUNNING, at
    batch.changed(run)
    batch.move(run.job, JobState.RUNNING, at)
    batch.tell(run, EventKind.RUNNING, client_events.running(run.place()), at)
    return True


def _record_succeeded(report: Report, run: Run, at: datetime, batch: _Batch) -> bool:
    _record_running(report, run, at, batch)
    _end(report, run, RunState.SUCCEEDED, at, batch)
    run.settled_at = batch.now
    batch.move(run.job, JobState.SUCCEEDED, at)
    batch.tell(run, EventKind.SUCCEEDED, client_events.succeeded(run.place()), at)
    return True


def _record_failed(report: Report, run: Run, at: datetime, batch: _Batch) -> bool:
    _end(report, run, RunState.FAILED, at, batch)
    run.attempted = True
    return True


def _record_lease_returned(report: Report, run: Run, at: datetime, batch: _Batch) -> bool:
    _end(report, run, RunState.LEASE_RETURNED, at, batch)
    run.attempted = report.attempted
    payload = client_events.lease_returned(run.place(), reason=report.message, attempted=report.attempted)
    batch.tell(run, EventKind.LEASE_RETURNED, payload, at)
    return True


def _record_cancelled(report: Report, run: Run, at: datetime, batch: _Batch) -> bool:
    if run.job.cancel_requested_at is not None:
        _end_cancelled(report, run, at, batch)
    elif asked_to_give_way(run):
        _end_preempted(report, run, at, batch)
    else:
        # Nobody asked for it here: the job is still wanted, and the node is not at fault.
        _record_lease_returned(replace(report, attempted=False), run, at, batch)
    return True


def _end_cancelled(report: Report, run: Run, at: datetime, batch: _Batch) -> None:
    _end(report, run, RunState.CANCELLED, at, batch)
    run.settled_at, run.undecided_because = batch.now, UndecidedBecause.CANCELLED
    batch.move(run.job, JobState.CANCELLED, at)
    batch.tell(run, EventKind.CANCELLED, client_events.cancelled(run.job.cancel_user), at)


def _end_preempted(report: Report, run: Run, at: datetime, batch: _Batch) -> None:
    job = run.job
    _end(replace(report, message=job.preempt_reason), run, RunState.PREEMPTED, at, batch)
    why = Preemption(reason=job.preempt_reason, requestor=job.preempt_user)
    batch.events += preempt(run, why, at=at, recorded_at=batch.now, requeue=batch.requeue_preempted)
    batch.jobs[job.id] = job


_RECORDERS = {
    ReportState.PENDING: _record_pending,
    ReportState.RUNNING: _record_running,
    ReportState.SUCCEEDED: _record_succeeded,
    ReportState.FAILED: _record_failed,
    ReportState.LEASE_RETURNED: _record_lease_returned,
    ReportState.CANCELLED: _record_cancelled,
}


def _end(report: Report, run: Run, state: RunState, at: datetime, batch: _Batch) -> None:
    """The run's end and everything known of it, in one transaction with its failure."""
    run.state, run.ended_at, run.recorded_at = state, at, batch.now
    run.exit_code, run.signal = report.exit_code, report.signal
    run.memory_peak_bytes = report.memory_peak_bytes
    run.killed_by, run.enforced_by = report.killed_by, report.enforced_by
    run.core_seconds = run.core_seconds_until(at)
    if state in (RunState.FAILED, RunState.LEASE_RETURNED):
        run.category, run.subcategory = report.category, report.subcategory
        run.fingerprint = fingerprint(report.message)
    if report.message or report.reason or report.containers or report.warnings:
        batch.errors.append(_error_of(report, run))
    if report.output is not None:
        batch.outputs.append(
            RunOutput(
                run=run,
                head=report.output.head,
                tail=report.output.tail,
                dropped_bytes=report.output.dropped_bytes,
            )
        )
    batch.changed(run)


def _error_of(report: Report, run: Run) -> RunError:
    return RunError(
        run=run,
        message=report.message,
        reason=report.reason[:MAX_REASON_LENGTH],
        containers=[
            {
                "name": container.name,
                "exitCode": container.exit_code,
                "reason": container.reason,
                "message": container.message,
                "init": container.is_init,
            }
            for container in report.containers
        ],
        warnings=list(report.warnings),
    )
