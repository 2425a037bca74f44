"""Runs and decisions as they travel."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from lookout.api.lists import TotalView
from lookout.api.shapes import WhenKnown
from policies.decision import Verdict
from policies.wording import undecided_sentence
from scheduler.models import Decision, Run, RunError
from scheduler.queries.jobs import decision_of
from scheduler.states import RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Retries used, of how many."""

    used: int
    limit: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class BudgetChange:
    """A budget before and after a decision."""

    before: Budget
    after: Budget


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DecisionView:
    """What a retry policy said about a failed run, and what that changed."""

    run_id: UUID
    job_id: str
    policy: str
    version: int
    rule_index: int | None
    """From 0; null when no rule matched."""
    verdict: Verdict
    reason: str
    sentence: str
    """Verdict, rule, budget and changes in words."""
    policy_budget: BudgetChange
    global_budget: BudgetChange
    memory_from_bytes: int | None
    memory_to_bytes: int | None
    avoids_nodes: tuple[str, ...]
    """Every node the job avoids from now on, when this decision added one."""
    decided_at: datetime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ContainerView:
    """How one container ended."""

    name: str
    exit_code: int | None
    reason: str
    message: str
    is_init: bool


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunErrorView:
    """Why a run ended badly, in the words of whoever saw it."""

    message: str
    reason: str
    """OOM, Evicted, DeadlineExceeded or AppError; empty where nobody knows."""
    containers: tuple[ContainerView, ...]
    warnings: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunView:
    """One try of a job on one node."""

    run_id: UUID
    job_id: str
    queue: str
    job_set_id: str
    number: int
    """1 for the first."""
    executor: str
    node: str
    pool: str
    state: RunState
    leased_at: datetime
    pending_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    signal: int | None
    category: str
    subcategory: str
    fingerprint: str
    """What equal errors have in common; empty where there was none."""
    core_seconds: float
    """Reserved cores times seconds of running."""
    retryable: bool | None
    """Whether the job went on after this failure; null until it is decided, and for runs that did not fail."""
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    memory_peak_bytes: int | None
    killed_by: str
    """memory, deadline, stop, signal, or empty."""
    enforced_by: str
    """Who held it to its memory limit: cgroup2, cgroup1, poll, or empty for nobody."""
    error: RunErrorView | None
    undecided_because: str
    """Why no policy decided; empty when one did or nothing was to decide."""
    undecided_sentence: str
    """The same in words."""
    decision: DecisionView | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunList:
    """Some of the runs that were asked for."""

    runs: tuple[RunView, ...]
    next: str | None
    """The cursor of the page after this one; null on the last."""
    total: Annotated[TotalView | None, WhenKnown()] = None
    """When it was asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DecisionList:
    """Some of the decisions that were asked for."""

    decisions: tuple[DecisionView, ...]
    next: str | None
    """The cursor of the page after this one; null on the last."""
    total: Annotated[TotalView | None, WhenKnown()] = None
    """When it was asked for."""


def decision_view(decision: Decision, sentence: str) -> DecisionView:
    """A decision as it travels."""
    return DecisionView(
        run_id=decision.run_id,
        job_id=decision.job_id,
        policy=decision.policy_name,
        version=decision.policy_version,
        rule_index=decision.rule_index,
        verdict=Verdict(decision.verdict),
        reason=decision.reason,
        sentence=sentence,
        policy_budget=_change(decision.policy_used_before, decision.policy_used_after, decision.policy_limit),
        global_budget=_change(decision.global_used_before, decision.global_used_after, decision.global_limit),
        memory_from_bytes=decision.memory_from_bytes,
        memory_to_bytes=decision.memory_to_bytes,
        avoids_nodes=tuple(decision.avoids_nodes),
        decided_at=decision.decided_at,
    )


def _change(before: int, after: int, limit: int) -> BudgetChange:
    return BudgetChange(before=Budget(used=before, limit=limit), after=Budget(used=after, limit=limit))


def run_view(run: Run, sentences: Mapping[UUID, str]) -> RunView:
    """A run that was read with error, decision and job; its sentence is among those given."""
    decision = decision_of(run)
    return RunView(
        run_id=run.id,
        job_id=run.job_id,
        queue=run.queue_id,
        job_set_id=run.job.job_set.name,
        number=run.number,
        executor=run.executor_id,
        node=run.node,
        pool=run.pool,
        state=RunState(run.state),
        leased_at=run.leased_at,
        pending_at=run.pending_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        exit_code=run.exit_code,
        signal=run.signal,
        category=run.category,
        subcategory=run.subcategory,
        fingerprint=run.fingerprint,
        core_seconds=run.core_seconds,
        retryable=run.retryable,
        memory_request_bytes=run.memory_request_bytes,
        memory_limit_bytes=run.memory_limit_bytes,
        memory_peak_bytes=run.memory_peak_bytes,
        killed_by=run.killed_by,
        enforced_by=run.enforced_by,
        error=_error_view(getattr(run, "error", None)),
        undecided_because=run.undecided_because,
        undecided_sentence=undecided_sentence(run.undecided_because) if run.undecided_because else "",
        decision=decision_view(decision, sentences.get(run.id, "")) if decision else None,
    )


def _error_view(error: RunError | None) -> RunErrorView | None:
    if error is None:
        return None
    return RunErrorView(
        message=error.message,
        reason=error.reason,
        containers=tuple(_container_view(container) for container in error.containers),
        warnings=tuple(error.warnings),
    )


def _container_view(container: Mapping[str, Any]) -> ContainerView:
    return ContainerView(
        name=container.get("name", ""),
        exit_code=container.get("exitCode"),
        reason=container.get("reason", ""),
        message=container.get("message", ""),
        is_init=bool(container.get("init")),
    )
