"""What follows when a run has ended badly: a pure function of the case, told apart from writing it down.

Source: the model's scheduler, sections 5.3 to 5.9 of its retry behaviour. A policy decides, or the legacy
path does; whatever grows or moves the job is only asked for here and is checked against the fleet, for
the whole batch at once, before it is granted.

A case has neither ids nor the words of an error in it: in a storm most cases are equal, and are settled once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from policies.decision import GROWN_FITS_NO_NODE, NO_UNTRIED_NODE_FITS, Decision, decide
from policies.failures import Failure, InternalSubcategory, internal_failure
from policies.growth import Growth, MemoryRecord, grow
from policies.policy import Mutation, Policy
from scheduler.config import Configuration
from scheduler.states import FAILED_RUN_STATES, RunState, UndecidedBecause

FAIL_FAST = "armadaproject.io/failFast"


class Course(StrEnum):
    """What becomes of the job."""

    REQUEUE = "requeue"
    FAIL = "fail"
    CANCEL = "cancel"


class Quote(StrEnum):
    """What of the run's own words the job's failed event repeats."""

    NOTHING = "nothing"
    MESSAGE = "message"
    DETAIL = "detail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """What the executor, or the lease sweep, said of the end of one run."""

    message: str = ""
    reason: str = ""
    """OOM, Evicted, DeadlineExceeded or AppError."""
    containers: Sequence[dict[str, Any]] = ()

    @property
    def detail(self) -> str:
        """What is known of the end, for the last word to the client."""
        lines = [self.message.rstrip("\n")] if self.message else []
        for container in self.containers:
            name = container.get("name") or "container"
            lines.append(
                f"{name} exited with code {container.get('exitCode')}: {container.get('message', '')}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedRun:
    """The run to settle, as far as anything depends on it."""

    state: RunState
    attempted: bool
    failure: Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class GoverningPolicy:
    """The policy that has a say about a queue's failures; `policy` is None when its document is unreadable."""

    name: str
    version: int
    policy: Policy | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Everything a settlement depends on, and what the job asks of a node."""

    run: EndedRun
    cancel_requested: bool
    fail_fast: bool
    in_gang: bool = False
    """The job starts together with others, and what has begun cannot begin again with them."""
    governing: GoverningPolicy | None
    genuine_failures: Sequence[Failure | None]
    """Failures of the job so far, oldest first, this run's included when it counts."""
    attempts: int
    """What counts against the limit of lease returns."""
    memory: MemoryRecord
    cpu_request_millicores: int = 0
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    resources: Mapping[str, int] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Sequence[Sequence[Mapping[str, Any]]] = ()
    tolerations: Sequence[Mapping[str, str]] = ()
    needed_fields: Sequence[str] = ()
    avoided_nodes: tuple[str, ...]
    attempted_nodes: tuple[str, ...]
    """Node ids of every attempted run, this one included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settlement:
    """What becomes of the job and why; nothing of it is written yet."""

    case: Case
    course: Course
    verdict: str = ""
    """What the job's failed event says before the run's own words."""
    quotes: Quote = Quote.NOTHING
    failure: Failure
    """Category of the job's failed event."""
    decision: Decision | None = None
    undecided_because: UndecidedBecause | None = None
    growth: Growth | None = None
    avoided_nodes: tuple[str, ...] = ()
    """What the job avoids from now on."""

    @property
    def requeues(self) -> bool:
        """The job runs again."""
        return self.course is Course.REQUEUE

    @property
    def grows(self) -> bool:
        """The job asks for more memory than it had."""
        return self.requeues and self.growth is not None and self.growth.applied

    @property
    def avoids_more(self) -> bool:
        """The job must stay away from nodes it was not kept from before."""
        return self.requeues and self.avoided_nodes != self.case.avoided_nodes

    def message(self, words: Words) -> str:
        """Of the job's failed event; empty when there is none."""
        if self.quotes is Quote.NOTHING:
            return self.verdict
        own = words.message if self.quotes is Quote.MESSAGE else words.detail
        return f"{self.verdict}\n\nFinal run error:\n{own}" if self.verdict and own else self.verdict or own

    @property
    def is_failure(self) -> bool:
        """The run failed: not a lease that was given back, nor the end somebody asked for."""
        return self.case.run.state in FAILED_RUN_STATES and self.course is not Course.CANCEL

    @property
    def is_pod_failure(self) -> bool:
        """The client hears the executor's own error, not a verdict in its place."""
        return self.case.run.state is RunState.FAILED and (self.requeues or self.decision is None)


def settle(case: Case, *, config: Configuration) -> Settlement:
    """What follows from the case, before the fleet was asked whether it fits."""
    if case.cancel_requested:
        return Settlement(
            case=case, course=Course.CANCEL, failure=case.run.failure,
            undecided_because=UndecidedBecause.CANCELLED, avoided_nodes=case.avoided_nodes,
        )  # fmt: skip
    because = undecided_because(case, config=config)
    if because is None:
        return _decided(case, config=config)
    if case.run.state is RunState.LEASE_RETURNED:
        return _returned(case, because, config=config)
    return Settlement(
        case=case, course=Course.FAIL, quotes=Quote.MESSAGE, failure=case.run.failure,
        undecided_because=because, avoided_nodes=case.avoided_nodes,
    )  # fmt: skip


def undecided_because(case: Case, *, config: Configuration) -> UndecidedBecause | None:
    """Why no policy has a say; None when one has."""
    if not config.retry_policy.enabled:
        return UndecidedBecause.FLAG_OFF
    if case.governing is None:
        return UndecidedBecause.NO_POLICY
    if case.in_gang:
        return UndecidedBecause.GANG
    if case.fail_fast:
        return UndecidedBecause.FAIL_FAST
    if case.governing.policy is None:
        return UndecidedBecause.POLICY_UNREADABLE
    if case.run.state is RunState.LEASE_RETURNED:
        return UndecidedBecause.LEASE_RETURN
    return None


def without_room_to_grow(settlement: Settlement) -> Settlement:
    """The grown job fits no node: granted, and not carried out. What was tried is kept for the record."""
    return replace(_unschedulable(settlement, GROWN_FITS_NO_NODE), growth=settlement.growth)


def without_untried_node(settlement: Settlement) -> Settlement:
    """No node is left that the job may go to."""
    if settlement.decision is not None:
        return _unschedulable(settlement, NO_UNTRIED_NODE_FITS)
    case = settlement.case
    text = (
        f"Job was attempted {case.attempts} times, and has been tried once on all nodes it can run on"
        " - this job will no longer be retried"
    )
    return replace(_exhausted(case, text), undecided_because=settlement.undecided_because)


def _decided(case: Case, *, config: Configuration) -> Settlement:
    assert case.governing is not None and case.governing.policy is not None
    decision = decide(
        case.governing.policy,
        case.run.failure,
        case.genuine_failures,
        global_limit=config.retry_policy.global_max_retries,
    )
    if not decision.retries:
        return _declined(case, decision)
    return _granted(case, decision)


def _granted(case: Case, decision: Decision) -> Settlement:
    # A lost executor says nothing about the job's size or its node: expiry changes neither.
    mutation = None if case.run.state is RunState.LEASE_EXPIRED else decision.mutation
    growth = _growth(case, mutation)
    if growth is not None and growth.exceeds_any_node:
        return _declined(case, decision.unschedulable(GROWN_FITS_NO_NODE))
    return Settlement(
        case=case,
        course=Course.REQUEUE,
        quotes=Quote.MESSAGE,
        failure=case.run.failure,
        decision=decision,
        growth=growth,
        avoided_nodes=_avoided(case) if _moves(case, mutation) else case.avoided_nodes,
    )


def _growth(case: Case, mutation: Mutation | None) -> Growth | None:
    if mutation is None or mutation.memory is None:
        return None
    return grow(case.memory, mutation.memory, case.memory_request_bytes, case.memory_limit_bytes)


def _moves(case: Case, mutation: Mutation | None) -> bool:
    return mutation is not None and mutation.avoid_same_node and case.run.attempted


def _avoided(case: Case) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*case.avoided_nodes, *case.attempted_nodes)))


def _declined(case: Case, decision: Decision) -> Settlement:
    expired = case.run.state is RunState.LEASE_EXPIRED
    said = "Lease expired and not retried by policy" if expired else "Retry policy"
    return Settlement(
        case=case, course=Course.FAIL, verdict=f"{said}: {decision.reason}",
        quotes=Quote.NOTHING if expired else Quote.DETAIL, failure=case.run.failure,
        decision=decision, avoided_nodes=case.avoided_nodes,
    )  # fmt: skip


def _unschedulable(settlement: Settlement, reason: str) -> Settlement:
    assert settlement.decision is not None
    return _declined(settlement.case, settlement.decision.unschedulable(reason))


def _returned(case: Case, because: UndecidedBecause, *, config: Configuration) -> Settlement:
    if case.fail_fast:
        text = "Job has fail fast flag set - this job will no longer be retried"
        return replace(_exhausted(case, text), undecided_because=because)
    if case.attempts >= config.attempt_limit:
        text = f"Maximum number of attempts ({config.attempt_limit}) reached - this job will no longer be retried"
        return replace(_exhausted(case, text), undecided_because=because)
    return Settlement(
        case=case, course=Course.REQUEUE, failure=case.run.failure, undecided_because=because,
        avoided_nodes=_avoided(case) if case.run.attempted else case.avoided_nodes,
    )  # fmt: skip


def _exhausted(case: Case, text: str) -> Settlement:
    return Settlement(
        case=case,
        course=Course.FAIL,
        verdict=text,
        quotes=Quote.MESSAGE,
        failure=internal_failure(InternalSubcategory.MAX_RUNS_EXCEEDED),
        avoided_nodes=case.avoided_nodes,
    )
