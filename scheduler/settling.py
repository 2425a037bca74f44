"""Settle runs that ended badly: decide, mutate, requeue or fail. Once per run, however many workers try."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from scheduler import client_events
from scheduler.client_events import PodFailure
from scheduler.config import Configuration
from scheduler.models import Decision, Event, Job
from scheduler.models.bulk import update_rows
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.placement import Requirements, fits_somewhere, reserved_memory
from scheduler.queries.fleet import fleet_nodes
from scheduler.queries.unsettled import Unsettled, case_of, governing_policies, unsettled_runs
from scheduler.settlement import Course, Settlement, settle, without_room_to_grow, without_untried_node
from scheduler.states import FAILED_RUN_STATES, EventKind, JobState

BATCH = 5_000
"""Jobs settled in one transaction at most."""
TRIES = 3
"""How often a run that cannot be settled is tried before it is set aside."""

RUN_FIELDS = ("settled_at", "retryable", "undecided_because")
JOB_FIELDS = (
    "state", "state_changed_at", "ended_at", "queued_version", "version", "avoided_nodes",
    "memory_request_bytes", "memory_limit_bytes", "memory_factor", "memory_static_bytes",
)  # fmt: skip

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What a batch came to."""

    runs: int
    requeued: int
    more: bool
    """There may be runs left to settle."""


@dataclass(kw_only=True, slots=True)
class _Batch:
    """Settlements and the rows they are about."""

    now: datetime
    settlements: list[Settlement] = field(default_factory=list)
    rows: dict[str, Unsettled] = field(default_factory=dict)
    """By run id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Check:
    """A question to the fleet: who asks it, and what becomes of those that would fit nowhere."""

    asks: Callable[[Settlement], bool]
    avoiding: bool
    refuse: Callable[[Settlement], Settlement]


@transaction.atomic
def settle_runs(*, config: Configuration, limit: int = BATCH) -> Settled:
    """Settle ended runs that await it. Settling twice changes nothing: a decision's key is its run.

    A run that cannot be settled is tried three times, then set aside with its error; it never holds up
    the others of its batch.
    """
    claim = Job.objects.claim_unsettled(limit)  # locks them; what another worker holds is skipped
    settlements = _settle_or_halve(claim.jobs, config)
    return Settled(
        runs=len(settlements),
        requeued=sum(settlement.requeues for settlement in settlements),
        more=claim.more,
    )


def _settle_or_halve(jobs: Sequence[Job], config: Configuration) -> list[Settlement]:
    """Settle the runs of locked jobs; where that fails as a whole, find the ones to blame by halving."""
    if not jobs:
        return []
    try:
        with transaction.atomic():
            return _settle_batch(unsettled_runs(jobs), config)
    except Exception as error:  # noqa: BLE001 - whatever the rows of one job do to us, the others go on
        # The failed try has changed the rows in memory, and a job must not grow twice.
        again = Job.objects.reread(jobs)
        if len(again) == 1:
            for row in unsettled_runs(again):
                _note_trouble(row, error)
            return []
        middle = len(again) // 2
        return _settle_or_halve(again[:middle], config) + _settle_or_halve(again[middle:], config)


def _settle_batch(unsettled: Sequence[Unsettled], config: Configuration) -> list[Settlement]:
    batch = _decide(unsettled, config)
    _keep_what_fits(batch, config)
    for settlement in batch.settlements:
        _carry_out(settlement, batch.rows[settlement.case.run.run_id], batch.now)
    Decision.objects.bulk_create(_decisions(batch), batch_size=2_000)
    update_rows([row.run for row in batch.rows.values()], RUN_FIELDS)
    update_rows([row.job for row in batch.rows.values()], JOB_FIELDS)
    Event.objects.append(_events(batch))  # last: it takes the numbers of the job sets
    return batch.settlements


def _decide(unsettled: Sequence[Unsettled], config: Configuration) -> _Batch:
    governing = governing_policies({row.job.queue_id for row in unsettled}, config=config)
    batch = _Batch(now=database_now())
    for row in unsettled:
        try:
            settlement = settle(case_of(row, governing[row.job.queue_id], config=config), config=config)
        except Exception as error:  # noqa: BLE001 - whatever one run's data does to us, the others go on
            _note_trouble(row, error)
            continue
        batch.settlements.append(settlement)
        batch.rows[settlement.case.run.run_id] = row
    return batch


def _note_trouble(row: Unsettled, error: Exception) -> None:
    """Count the try; after the last, set the run aside for an operator. Twice in one claim is one try."""
    run = row.run
    run.settle_tries = row.tries_before + 1
    log.error("run %s could not be settled (try %s of %s): %s", run.id, run.settle_tries, TRIES, error)
    if run.settle_tries >= TRIES:
        run.settle_error = f"{type(error).__name__}: {error}"[:2_000]
    update_rows([run], ("settle_tries", "settle_error"))


_CHECKS = (
    _Check(asks=lambda each: each.grows, avoiding=False, refuse=without_room_to_grow),
    _Check(asks=lambda each: each.avoids_more, avoiding=True, refuse=without_untried_node),
)


def _keep_what_fits(batch: _Batch, config: Configuration) -> None:
    """Ask the fleet at most twice for the whole batch: about grown jobs, then about those that also avoid nodes."""
    if not any(check.asks(each) for check in _CHECKS for each in batch.settlements):
        return
    nodes = fleet_nodes(config=config)
    for check in _CHECKS:
        asked = {
            each.case.run.run_id: _requirements(each, batch, avoiding=check.avoiding)
            for each in batch.settlements
            if check.asks(each)
        }
        if asked:
            found = fits_somewhere(asked.values(), nodes, node_id_label=config.node_id_label)
            nowhere = {run_id for run_id, wanted in asked.items() if not found[wanted].fits}
            batch.settlements = [
                check.refuse(each) if each.case.run.run_id in nowhere else each for each in batch.settlements
            ]


def _requirements(settlement: Settlement, batch: _Batch, *, avoiding: bool) -> Requirements:
    job, growth = batch.rows[settlement.case.run.run_id].job, settlement.growth
    request = growth.request_bytes if growth else job.memory_request_bytes
    limit = growth.limit_bytes if growth else job.memory_limit_bytes
    avoided = settlement.avoided_nodes if avoiding else settlement.case.avoided_nodes
    return replace(
        Requirements.of(job),
        memory_bytes=reserved_memory(request=request, limit=limit),
        avoided_nodes=tuple(sorted(avoided)),
    )


def _carry_out(settlement: Settlement, row: Unsettled, now: datetime) -> None:
    """Bring the settlement into the rows; the batch writes them."""
    job, run = row.job, row.run
    run.settled_at = now
    run.undecided_because = settlement.undecided_because or ""
    run.retryable = settlement.requeues if _is_failure(settlement) else None
    job.state = _STATES[settlement.course]
    job.state_changed_at = now
    job.ended_at = None if settlement.requeues else now
    job.version += 1
    if settlement.requeues:
        job.queued_version += 1
        job.avoided_nodes = list(settlement.avoided_nodes)
    if settlement.grows and (growth := settlement.growth):
        job.memory_request_bytes, job.memory_limit_bytes = growth.request_bytes, growth.limit_bytes
        job.memory_factor = growth.record.factor
        job.memory_static_bytes = growth.record.static_bytes


def _is_failure(settlement: Settlement) -> bool:
    """Not a lease that was given back, nor the end somebody asked for."""
    return settlement.case.run.state in FAILED_RUN_STATES and settlement.course is not Course.CANCEL


_STATES = {
    Course.REQUEUE: JobState.QUEUED,
    Course.FAIL: JobState.FAILED,
    Course.CANCEL: JobState.CANCELLED,
}


def _decisions(batch: _Batch) -> list[Decision]:
    return [
        _decision(settlement, batch.now)
        for settlement in batch.settlements
        if settlement.decision is not None
    ]


def _decision(settlement: Settlement, now: datetime) -> Decision:
    case, made, governing = settlement.case, settlement.decision, settlement.case.governing
    assert made is not None and governing is not None
    grown = settlement.growth if settlement.growth and settlement.growth.applied else None
    return Decision(
        run_id=UUID(case.run.run_id),
        job_id=case.job_id,
        policy_name=governing.name,
        policy_version=governing.version,
        rule_index=made.rule_index,
        verdict=made.verdict,
        reason=made.reason,
        policy_used_before=made.policy_budget.used,
        policy_used_after=made.policy_budget_after.used,
        policy_limit=made.policy_budget.limit,
        global_used_before=made.global_budget.used,
        global_used_after=made.global_budget_after.used,
        global_limit=made.global_budget.limit,
        memory_from_bytes=_shown(case.memory_request_bytes, case.memory_limit_bytes) if grown else None,
        memory_to_bytes=_shown(grown.request_bytes, grown.limit_bytes) if grown else None,
        avoids_nodes=list(settlement.avoided_nodes) if settlement.avoids_more else [],
        decided_at=now,
    )


def _shown(request: int | None, limit: int | None) -> int | None:
    """The memory people think of: the limit, or else the request."""
    return limit if limit is not None else request


def _events(batch: _Batch) -> list[NewEvent]:
    return [
        event
        for settlement in batch.settlements
        if (event := _event(settlement, batch.rows[settlement.case.run.run_id], batch.now))
    ]


def _event(settlement: Settlement, row: Unsettled, now: datetime) -> NewEvent | None:
    """What the client hears. A lease that merely came back and is given out again says nothing more."""
    job = row.job
    if settlement.course is Course.CANCEL:
        kind, payload = EventKind.CANCELLED, client_events.cancelled(job.cancel_user)
    elif settlement.requeues and settlement.decision is None:
        return None
    else:
        kind, payload = EventKind.FAILED, _failed_payload(settlement, row)
    return NewEvent(
        job_set_id=job.job_set_id, job_id=job.id, run_id=row.run.id, kind=kind, created=now, payload=payload
    )


def _failed_payload(settlement: Settlement, row: Unsettled) -> dict[str, object]:
    ended = settlement.case.run
    governing = settlement.case.governing if settlement.decision is not None else None
    pod_failure = PodFailure(reason=ended.reason, containers=ended.containers)
    return client_events.failed(
        reason=settlement.message,
        category=settlement.failure.category,
        subcategory=settlement.failure.subcategory,
        retryable=settlement.requeues,
        policy=governing.name if governing else "",
        place=row.run.place(),
        pod_failure=pod_failure if settlement.is_pod_failure else None,
    )
