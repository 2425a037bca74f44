"""What an agent does about a run, as values: judge its end once, then what to do next at each look.

Nothing here knows processes or pods, files or HTTP. `end_of` turns an observed end into a report and the order
of things; `next_steps` says, for what is left of the run now, what comes next. Asking again after a crash gives
the same answer, because all it depends on is in the journal.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from policies.failures import UNCLASSIFIED, Failure, InternalSubcategory, internal_failure
from scheduler.agent.judging import Intent, Judge, Order
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import Observation, Remains, Report, ReportState, Trouble


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
    if end.order is Order.FORGET:
        return (Step.FORGET,)
    if end.order.removes_first:
        return _remove_first(end, remains, now, limits)
    if not end.told:
        return (Step.REPORT,)
    if end.order is Order.REPORT_ONLY or not remains.present:
        return (Step.FORGET,)
    if end.order is Order.REPORT_AND_RETAIN and end.detected.age(now) < limits.retain_seconds:
        return ()
    return (Step.REMOVE,)


def _remove_first(end: End, remains: Remains, now: Instant, limits: Limits) -> tuple[Step, ...]:
    if not remains.present:
        return (Step.FORGET,) if end.told else (Step.REPORT,)
    waited = end.detected.age(now) if remains.deleting_seconds is None else remains.deleting_seconds
    if end.told or waited <= limits.stuck_terminating_seconds:
        return (Step.REMOVE,)
    stuck = end.order is Order.DELETE_THEN_REPORT
    return (Step.REPORT_STUCK if stuck else Step.REPORT, Step.REMOVE)


def end_of(entry: Entry, seen: Observation, judge: Judge, *, now: Instant) -> Entry:
    """The entry with its end, judged once with everything known. The first end stands.

    Only a run that starts while its lease is on its way back, because it did not start, has failed after all.
    """
    if entry.end is not None and not _is_overtaken(entry.end, seen):
        return entry
    report, order = judge.judge(entry.run_id, seen, entry.intent)
    report = replace(report, node=entry.node, pod_name=entry.pod_name)
    end = End(report=report, order=order, detected=now, told=entry.intent is Intent.FORGET)
    return replace(entry, end=end)


def _is_overtaken(end: End, seen: Observation) -> bool:
    goes_back = end.report.state is ReportState.LEASE_RETURNED and not end.told
    return seen.trouble is Trouble.STARTED_LATE and goes_back


def without_run(entry: Entry, why: str, *, now: Instant) -> Entry:
    """The entry of a run that could not begin here: its lease goes back, attempted, once the name is free."""
    report = replace(_report_of(entry, why), state=ReportState.LEASE_RETURNED)
    return _ended(entry, report, Order.FREE_NAME_AND_REPORT, now)


def forbidden(entry: Entry, why: str, *, now: Instant) -> Entry:
    """The entry of a lease that was refused for good: it fails without a category, once the name is free."""
    return _ended(entry, _report_of(entry, why), Order.FREE_NAME_AND_REPORT, now)


def impossible(entry: Entry, why: str, *, now: Instant) -> Entry:
    """The entry of a lease that can never become a run: it fails with the built-in category."""
    failure = internal_failure(InternalSubcategory.JOB_CREATION_FAILED)
    return _ended(entry, _report_of(entry, why, failure), Order.REPORT_ONLY, now)


def unknown_run(run_id: str, *, now: Instant) -> Entry:
    """An entry for a run the agent is asked to stop and has never heard of: it is as good as stopped."""
    entry = Entry(run_id=run_id, node="", pod_name="")
    report = replace(_report_of(entry, "The agent does not have this run."), state=ReportState.CANCELLED)
    return _ended(entry, report, Order.REPORT_ONLY, now)


def turned_away(entry: Entry, *, now: Instant) -> Entry:
    """The entry of a lease that came while the agent was going away: it goes back, and nothing was attempted."""
    report = replace(_report_of(entry, _GOING_AWAY), state=ReportState.LEASE_RETURNED, attempted=False)
    return _ended(entry, report, Order.REPORT_ONLY, now)


_GOING_AWAY = "The agent was being stopped when the lease came; the job is to run again."


def missed_run(run_id: str, *, now: Instant) -> Entry:
    """An entry for a run that is at work as far as the scheduler knows, and of which there is nothing here."""
    entry = Entry(run_id=run_id, node="", pod_name="")
    failure = internal_failure(InternalSubcategory.POD_MISSING)
    return _ended(entry, _report_of(entry, _MISSED, failure), Order.REPORT_ONLY, now)


_MISSED = "Nothing is left of this run where it was at work, not even how it ended."


def _report_of(entry: Entry, message: str, failure: Failure = UNCLASSIFIED) -> Report:
    """A failure that no end was seen of."""
    return Report(
        run_id=entry.run_id,
        state=ReportState.FAILED,
        node=entry.node,
        pod_name=entry.pod_name,
        category=failure.category,
        subcategory=failure.subcategory,
        message=message,
        reason="AppError",
    )


def _ended(entry: Entry, report: Report, order: Order, now: Instant) -> Entry:
    if report.state is not ReportState.FAILED:
        report = replace(report, reason="")
    return replace(entry, end=End(report=report, order=order, detected=now))


def due_report(entry: Entry, step: Step, *, now: Instant) -> Report:
    """The report to send for an ended run, with its age as of now."""
    assert entry.end is not None
    report = _stuck(entry.end.report) if step is Step.REPORT_STUCK else entry.end.report
    return replace(report, age_seconds=report.age_seconds + entry.end.detected.age(now))


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
