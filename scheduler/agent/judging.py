"""What the end of a run means: judged once, with everything known, into a report and the order of things.

The one judgement decides what becomes of the remains and is what the scheduler is told. Nothing here knows
processes or pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from policies.failed_checks import FailedChecks
from policies.failures import (
    Categories,
    Classification,
    Disposition,
    InternalSubcategory,
    Signals,
    failure_text,
    internal_failure,
    kubernetes_reason,
    reported_message,
)
from scheduler.executors.protocol import (
    ExitRecord,
    KilledBy,
    Observation,
    Report,
    ReportState,
    RunPhase,
    Trouble,
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
    """In what order a run is reported and its remains are removed."""

    DELETE_THEN_REPORT = "delete_then_report"
    """Remains that will not go turn the report into one that says so."""
    FREE_NAME_AND_REPORT = "free_name_and_report"
    """The remains of that name are an earlier run's; the report is the same whether they go or not."""
    REPORT_THEN_DELETE = "report_then_delete"
    REPORT_AND_RETAIN = "report_and_retain"
    REPORT_ONLY = "report_only"
    """Nothing is there to be removed, or it is not this run's."""
    FORGET = "forget"
    """Neither: as if the run had never been accepted."""

    @property
    def removes_first(self) -> bool:
        """The report waits for the remains to go."""
        return self in (Order.DELETE_THEN_REPORT, Order.FREE_NAME_AND_REPORT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """The rules of one executor."""

    categories: Categories = field(default_factory=Categories)
    failed_checks: FailedChecks = field(default_factory=FailedChecks)
    """They go before the categories."""

    def judge(self, run_id: str, seen: Observation, intent: Intent) -> tuple[Report, Order]:
        """What to tell of a run that has ended or is to, and when."""
        base = _base(run_id, seen)
        by_request = base.killed_by is KilledBy.STOP
        if intent is not Intent.NONE and (by_request or seen.trouble or seen.phase is RunPhase.LOST):
            return _as_intended(base, intent), Order.DELETE_THEN_REPORT
        if seen.trouble is not None:
            return self._troubled(base, seen, _ANSWERS[seen.trouble])
        if by_request:
            return _returned(base, _ENDED_FROM_OUTSIDE), Order.DELETE_THEN_REPORT
        if seen.phase is RunPhase.SUCCEEDED:
            return base, Order.REPORT_THEN_DELETE
        return self._failed(base, seen)

    def _failed(self, base: Report, seen: Observation) -> tuple[Report, Order]:
        if seen.failure is not None:
            found = Classification(failure=seen.failure, disposition=Disposition.DELETE)
            return _with(base, found, seen.signals), Order.DELETE_THEN_REPORT
        found = self.categories.classify(seen.signals.with_failure_text())
        report = _with(base, found, seen.signals)
        if self.failed_checks.match(seen.signals):
            return replace(report, state=ReportState.LEASE_RETURNED, reason=""), Order.DELETE_THEN_REPORT
        return report, _order_of(found, otherwise=Order.REPORT_AND_RETAIN)

    def _troubled(self, base: Report, seen: Observation, answer: "_Answer") -> tuple[Report, Order]:
        signals = replace(
            seen.signals, message="\n".join(filter(None, (answer.preface, seen.signals.message)))
        )
        if answer.internal is not None:
            found = Classification(failure=internal_failure(answer.internal))
        else:
            found = self.categories.classify(signals.with_failure_text())
        report = _with(base, found, signals)
        order = answer.order or _order_of(found, otherwise=Order.REPORT_THEN_DELETE)
        if answer.returns:
            report = replace(report, state=ReportState.LEASE_RETURNED, attempted=answer.attempted, reason="")
        return report, order


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """What is done about one kind of trouble."""

    order: Order | None = None
    """None: as the category says, and reported first where that retains."""
    internal: InternalSubcategory | None = None
    """The built-in failure it is; None: what the categories say."""
    returns: bool = False
    """The lease goes back instead of the run failing."""
    attempted: bool = True
    preface: str = ""


_NO_START = "Unable to start pod."
_NO_START_ANYWHERE = "Unable to start pod - encountered an unrecoverable problem."
_FIRST, _LAST = Order.DELETE_THEN_REPORT, Order.REPORT_THEN_DELETE
_ANSWERS: Mapping[Trouble, _Answer] = {
    Trouble.NOT_PLACED: _Answer(order=_FIRST, returns=True, attempted=False, preface=_NO_START),
    Trouble.START_DELAYED: _Answer(order=_FIRST, returns=True, preface=_NO_START),
    Trouble.START_IMPOSSIBLE: _Answer(preface=_NO_START_ANYWHERE),
    Trouble.STARTED_LATE: _Answer(order=_FIRST, internal=InternalSubcategory.ISSUE_HANDLER_ERROR),
    Trouble.OVERDUE: _Answer(order=_FIRST, internal=InternalSubcategory.ACTIVE_DEADLINE),
    Trouble.WILL_NOT_END: _Answer(order=_LAST, internal=InternalSubcategory.STUCK_TERMINATING),
    Trouble.TAKEN_AWAY: _Answer(order=Order.REPORT_ONLY, internal=InternalSubcategory.EXTERNALLY_DELETED),
    Trouble.VANISHED: _Answer(order=Order.REPORT_ONLY, internal=InternalSubcategory.POD_MISSING),
    Trouble.NEVER_APPEARED: _Answer(order=Order.FORGET, returns=True, attempted=False),
}

_GOING_AWAY = "The agent was stopped while the run was at work; the job is to run again."
_ENDED_FROM_OUTSIDE = "The run was asked to end from outside Tack, as when a machine is shut down."


def _base(run_id: str, seen: Observation) -> Report:
    record = seen.exit or ExitRecord()
    return Report(
        run_id=run_id,
        state=ReportState.SUCCEEDED,
        age_seconds=seen.age_seconds,
        exit_code=record.exit_code,
        signal=record.signal,
        containers=seen.signals.containers,
        memory_peak_bytes=record.memory_peak_bytes,
        killed_by=record.killed_by,
        enforced_by=record.enforced_by,
        warnings=record.warnings,
        output=record.output,
    )


def _as_intended(base: Report, intent: Intent) -> Report:
    if intent is Intent.RETURN:
        return _returned(base, _GOING_AWAY)
    return replace(base, state=ReportState.CANCELLED)


def _returned(base: Report, why: str) -> Report:
    return replace(base, state=ReportState.LEASE_RETURNED, attempted=False, message=why)


def _with(base: Report, found: Classification, signals: Signals) -> Report:
    """The report of a failure of that classification."""
    return replace(
        base,
        state=ReportState.FAILED,
        category=found.failure.category,
        subcategory=found.failure.subcategory,
        hint=found.hint,
        message=reported_message(failure_text(signals), found.hint),
        reason=kubernetes_reason(signals),
    )


def _order_of(found: Classification, *, otherwise: Order) -> Order:
    return Order.DELETE_THEN_REPORT if found.disposition is Disposition.DELETE else otherwise
