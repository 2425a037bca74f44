"""What an agent does about a run, as values: classify its end once, then what to do next at each look.

Nothing here knows processes or pods, files or HTTP. `end_of` turns an observed end into a report and the order
of things; `next_steps` says, for what is left of the run now, what comes next. Asking again after a crash gives
the same answer, because all it depends on is in the journal.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from policies.failures import (
    Categories,
    Disposition,
    InternalSubcategory,
    failure_text,
    internal_failure,
    kubernetes_reason,
    reported_message,
)
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import (
    ExitRecord,
    KilledBy,
    Observation,
    Remains,
    Report,
    ReportState,
    RunPhase,
)


class Intent(StrEnum):
    """Why an agent asked a run to end."""

    NONE = ""
    CANCEL = "cancel"
    """The scheduler wants no more of it."""
    RETURN = "return"
    """The agent is going away: the job is to run elsewhere."""
    FORGET = "forget"
    """The scheduler has finished with it: end it and tell nobody."""


class Order(StrEnum):
    """In what order an ended run is reported and its remains are removed."""

    DELETE_THEN_REPORT = "delete_then_report"
    REPORT_THEN_DELETE = "report_then_delete"
    REPORT_AND_RETAIN = "report_and_retain"


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """A run has ended: what will be told, and what is still to be done."""

    report: Report
    order: Order
    detected: Instant
    told: bool = False
    """The scheduler has an end of this run: this report, the one about being stuck, or it wants none."""
    gone: bool = False
    """Its remains were seen to be gone, or the name belongs to another run by now: do not look again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """All an agent knows of one run; what the journal keeps."""

    run_id: str
    node: str
    pod_name: str
    intent: Intent = Intent.NONE
    end: End | None = None

    @property
    def awaits_acceptance(self) -> bool:
        """The scheduler has not heard the end of it."""
        return self.end is None or not self.end.told


class Step(StrEnum):
    """What to do next about an ended run."""

    REMOVE = "remove"
    """Remove its remains, then look again."""
    REPORT = "report"
    """Send its report; from its acceptance on, the run counts as told."""
    REPORT_STUCK = "report_stuck"
    """Send that its remains cannot be removed instead."""
    FORGET = "forget"
    """Nothing is left to be done."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long an agent waits."""

    stuck_terminating_seconds: float = 30.0
    """For remains to go, before the run is reported as stuck."""
    retain_seconds: float = 600.0
    """Before retained remains are removed after all."""


def next_steps(end: End, remains: Remains, *, now: Instant, limits: Limits) -> tuple[Step, ...]:
    """What comes next for an ended run. None: nothing until something changes or time passes."""
    if end.order is Order.DELETE_THEN_REPORT:
        return _delete_first(end, remains, now, limits)
    if not end.told:
        return (Step.REPORT,)
    if not remains.present:
        return (Step.FORGET,)
    if end.order is Order.REPORT_AND_RETAIN and end.detected.age(now) < limits.retain_seconds:
        return ()
    return (Step.REMOVE,)


def _delete_first(end: End, remains: Remains, now: Instant, limits: Limits) -> tuple[Step, ...]:
    if not remains.present:
        return (Step.FORGET,) if end.told else (Step.REPORT,)
    waited = end.detected.age(now) if remains.deleting_seconds is None else remains.deleting_seconds
    if not end.told and waited > limits.stuck_terminating_seconds:
        return (Step.REPORT_STUCK, Step.REMOVE)
    return (Step.REMOVE,)


def end_of(entry: Entry, seen: Observation, categories: Categories, *, now: Instant) -> Entry:
    """The entry with its end: classified once, with everything known. The first end stands."""
    if entry.end is not None:
        return entry
    report, order = _judged(entry, seen, categories)
    report = replace(report, node=entry.node, pod_name=entry.pod_name, age_seconds=seen.age_seconds)
    end = End(report=report, order=order, detected=now, told=entry.intent is Intent.FORGET)
    return replace(entry, end=end)


def without_run(entry: Entry, why: str, *, now: Instant) -> Entry:
    """The entry of a run that never began here: its lease goes back, attempted, once the name is free."""
    report = Report(
        run_id=entry.run_id,
        state=ReportState.LEASE_RETURNED,
        node=entry.node,
        pod_name=entry.pod_name,
        message=why,
        attempted=True,
    )
    return replace(entry, end=End(report=report, order=Order.DELETE_THEN_REPORT, detected=now))


def impossible(entry: Entry, why: str, *, now: Instant) -> Entry:
    """The entry of a lease that can never become a run: it fails with the built-in category."""
    failure = internal_failure(InternalSubcategory.JOB_CREATION_FAILED)
    report = Report(
        run_id=entry.run_id,
        state=ReportState.FAILED,
        node=entry.node,
        pod_name=entry.pod_name,
        category=failure.category,
        subcategory=failure.subcategory,
        message=why,
        reason="AppError",
    )
    return replace(entry, end=End(report=report, order=Order.REPORT_THEN_DELETE, detected=now))


def unknown_run(run_id: str, *, now: Instant) -> Entry:
    """An entry for a run the agent is asked to stop and has never heard of: it is as good as stopped."""
    report = Report(run_id=run_id, state=ReportState.CANCELLED, message="The agent does not have this run.")
    end = End(report=report, order=Order.REPORT_THEN_DELETE, detected=now)
    return Entry(run_id=run_id, node="", pod_name="", end=end)


def due_report(entry: Entry, step: Step, *, now: Instant) -> Report:
    """The report to send for an ended run, with its age as of now."""
    assert entry.end is not None
    report = _stuck(entry.end.report) if step is Step.REPORT_STUCK else entry.end.report
    return replace(report, age_seconds=report.age_seconds + entry.end.detected.age(now))


def _judged(entry: Entry, seen: Observation, categories: Categories) -> tuple[Report, Order]:
    record = seen.exit or ExitRecord()
    stopped = record.killed_by is KilledBy.STOP or seen.phase is RunPhase.LOST
    base = Report(
        run_id=entry.run_id,
        state=ReportState.SUCCEEDED,
        exit_code=record.exit_code,
        signal=record.signal,
        containers=seen.signals.containers,
        memory_peak_bytes=record.memory_peak_bytes,
        killed_by=record.killed_by,
        enforced_by=record.enforced_by,
        warnings=record.warnings,
        output=record.output,
    )
    if stopped and entry.intent in (Intent.CANCEL, Intent.FORGET):
        return replace(base, state=ReportState.CANCELLED), Order.DELETE_THEN_REPORT
    if stopped and (entry.intent is Intent.RETURN or record.killed_by is KilledBy.STOP):
        why = _RETURNED if entry.intent is Intent.RETURN else _ENDED_FROM_OUTSIDE
        return _returned(base, why), Order.DELETE_THEN_REPORT
    if seen.phase is RunPhase.SUCCEEDED:
        return base, Order.REPORT_THEN_DELETE
    return _failed(base, seen, categories)


_RETURNED = "The agent was stopped while the run was at work; the job is to run again."
_ENDED_FROM_OUTSIDE = "The run was asked to end from outside Tack, as when a machine is shut down."


def _returned(base: Report, why: str) -> Report:
    return replace(base, state=ReportState.LEASE_RETURNED, attempted=False, message=why)


def _failed(base: Report, seen: Observation, categories: Categories) -> tuple[Report, Order]:
    message = failure_text(seen.signals)
    reason = kubernetes_reason(seen.signals)
    if seen.failure is not None:
        failure, hint, disposition = seen.failure, "", Disposition.DELETE
    else:
        found = categories.classify(seen.signals.with_failure_text())
        failure, hint, disposition = found.failure, found.hint, found.disposition
    report = replace(
        base,
        state=ReportState.FAILED,
        category=failure.category,
        subcategory=failure.subcategory,
        hint=hint,
        message=reported_message(message, hint),
        reason=reason,
    )
    return report, Order.DELETE_THEN_REPORT if disposition is Disposition.DELETE else Order.REPORT_AND_RETAIN


def _stuck(report: Report) -> Report:
    """What is sent when remains will not go: no retry could have the name, so the job fails."""
    if report.state is ReportState.CANCELLED:
        return report
    failure = internal_failure(InternalSubcategory.STUCK_TERMINATING)
    return replace(
        report,
        state=ReportState.FAILED,
        category=failure.category,
        subcategory=failure.subcategory,
        hint="",
        message=f"{report.message}\n\n{_STUCK}",
        reason=report.reason or "AppError",
    )


_STUCK = "What is left of the run could not be deleted, so the job is failed instead of run again."


def told(entry: Entry) -> Entry:
    """The entry once the scheduler has its end. The output has arrived, so it need not be kept."""
    if entry.end is None:
        return entry
    return replace(entry, end=replace(entry.end, told=True, report=replace(entry.end.report, output=None)))
