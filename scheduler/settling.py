"""Settle runs that ended badly: decide, mutate, requeue or fail. Once per run, however many workers try.

Runs whose settlement depends on equal facts are settled together: in a storm that is nearly all of them.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduler import client_events
from scheduler.client_events import Place, PodFailure, pod_name_of
from scheduler.config import Configuration
from scheduler.models import Decision, Event, Job, Run
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.jobs import Outcome
from scheduler.models.ulids import ulid_of_text
from scheduler.placement import NodeCapacity, Requirements, fits_somewhere, reserved_memory
from scheduler.queries.fleet import fleet_nodes
from scheduler.queries.unsettled import Unsettled, case_of, governing_policies, unsettled_runs
from scheduler.settlement import (
    Course,
    Settlement,
    Words,
    settle,
    without_room_to_grow,
    without_untried_node,
)
from scheduler.states import EventKind, JobState

BATCH = 2_000
"""Jobs settled in one transaction at most: a third of a second where nothing else goes on."""
TRIES = 3
"""How often a run that cannot be settled is tried before it is set aside."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What a batch came to."""

    runs: int
    requeued: int
    more: bool
    """There may be runs left to settle."""


@dataclass(kw_only=True, slots=True)
class _Alike:
    """Runs of equal facts, and what follows for each of them."""

    settlement: Settlement
    runs: Sequence[Unsettled]


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
    batch = _settle_or_halve(claim.jobs, config)
    return Settled(
        runs=sum(len(alike.runs) for alike in batch),
        requeued=sum(len(alike.runs) for alike in batch if alike.settlement.requeues),
        more=claim.more,
    )


def _settle_or_halve(jobs: Sequence[str], config: Configuration) -> list[_Alike]:
    """Settle the runs of locked jobs; where that fails as a whole, find the ones to blame by halving."""
    if not jobs:
        return []
    try:
        with transaction.atomic():
            return _settle_batch(jobs, config)
    except Exception as error:  # noqa: BLE001 - whatever the rows of one job do to us, the others go on
        if len(jobs) == 1:
            _note_trouble([run for runs in unsettled_runs(jobs).values() for run in runs], error)
            return []
        middle = len(jobs) // 2
        return _settle_or_halve(jobs[:middle], config) + _settle_or_halve(jobs[middle:], config)


def _settle_batch(jobs: Sequence[str], config: Configuration) -> list[_Alike]:
    batch = _decide(jobs, config)
    if not batch:
        return []
    _keep_what_fits(batch, config)
    now = database_now()
    Decision.objects.record(_decisions(batch), now)
    Run.objects.settle([_settled(alike) for alike in batch], now)
    Job.objects.carry_out([(_outcome(alike.settlement), _jobs(alike)) for alike in batch], now)
    Event.objects.append(_events(batch, now))  # last: it takes the numbers of the job sets
    return batch


def _decide(jobs: Sequence[str], config: Configuration) -> list[_Alike]:
    unsettled = unsettled_runs(jobs)
    governing = governing_policies({facts.queue for facts in unsettled}, config=config)
    batch = []
    for facts, runs in unsettled.items():
        try:
            settlement = settle(case_of(facts, governing[facts.queue], config=config), config=config)
        except Exception as error:  # noqa: BLE001 - whatever one run's data does to us, the others go on
            _note_trouble(runs, error)
            continue
        batch.append(_Alike(settlement=settlement, runs=runs))
    return batch


def _note_trouble(runs: Iterable[Unsettled], error: Exception) -> None:
    """Count the try; after the last, set the run aside for an operator. Twice in one claim is one try."""
    for run in runs:
        tries = run.tries + 1
        log.error("run %s could not be settled (try %s of %s): %s", run.run_id, tries, TRIES, error)
        settle_error = f"{type(error).__name__}: {error}"[:2_000] if tries >= TRIES else ""
        Run.objects.filter(id=run.run_id).update(settle_tries=tries, settle_error=settle_error)


_CHECKS = (
    _Check(asks=lambda each: each.grows, avoiding=False, refuse=without_room_to_grow),
    _Check(asks=lambda each: each.avoids_more, avoiding=True, refuse=without_untried_node),
)


def _keep_what_fits(batch: Sequence[_Alike], config: Configuration) -> None:
    """Ask the fleet at most twice for the whole batch: about grown jobs, then about those that also avoid nodes."""
    nodes: list[NodeCapacity] | None = None
    for check in _CHECKS:
        asking = [alike for alike in batch if check.asks(alike.settlement)]
        if not asking:
            continue
        nodes = fleet_nodes(config=config) if nodes is None else nodes
        wanted = [_requirements(alike.settlement, avoiding=check.avoiding) for alike in asking]
        found = fits_somewhere(wanted, nodes, node_id_label=config.node_id_label)
        for alike, requirements in zip(asking, wanted, strict=True):
            if not found[requirements].fits:
                alike.settlement = check.refuse(alike.settlement)


def _requirements(settlement: Settlement, *, avoiding: bool) -> Requirements:
    case, growth = settlement.case, settlement.growth
    request = growth.request_bytes if growth else case.memory_request_bytes
    limit = growth.limit_bytes if growth else case.memory_limit_bytes
    avoided = settlement.avoided_nodes if avoiding else case.avoided_nodes
    return replace(
        Requirements.of(case),
        memory_bytes=reserved_memory(request=request, limit=limit),
        avoided_nodes=tuple(sorted(avoided)),
    )


_STATES = {
    Course.REQUEUE: JobState.QUEUED,
    Course.FAIL: JobState.FAILED,
    Course.CANCEL: JobState.CANCELLED,
}


def _outcome(settlement: Settlement) -> Outcome:
    case, growth = settlement.case, settlement.growth if settlement.grows else None
    record = growth.record if growth else case.memory
    return Outcome(
        state=_STATES[settlement.course],
        requeued=settlement.requeues,
        avoided_nodes=settlement.avoided_nodes if settlement.requeues else case.avoided_nodes,
        memory_request_bytes=growth.request_bytes if growth else case.memory_request_bytes,
        memory_limit_bytes=growth.limit_bytes if growth else case.memory_limit_bytes,
        memory_factor=record.factor,
        memory_static_bytes=record.static_bytes,
    )


def _jobs(alike: _Alike) -> list[str]:
    return [run.job_id for run in alike.runs]


def _settled(alike: _Alike) -> tuple[bool | None, str, list[str]]:
    """Whether the runs are retryable, why no policy decided about them, and which they are."""
    settlement = alike.settlement
    retryable = settlement.requeues if settlement.is_failure else None
    return retryable, settlement.undecided_because or "", [run.run_id for run in alike.runs]


def _decisions(batch: Iterable[_Alike]) -> list[tuple[Decision, list[tuple[str, str]]]]:
    return [
        (_decision(alike.settlement), [(run.run_id, run.job_id) for run in alike.runs])
        for alike in batch
        if alike.settlement.decision is not None
    ]


def _decision(settlement: Settlement) -> Decision:
    """Of no run yet: equal cases share it."""
    case, made, governing = settlement.case, settlement.decision, settlement.case.governing
    assert made is not None and governing is not None
    grown = settlement.growth if settlement.growth and settlement.growth.applied else None
    return Decision(
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
    )


def _shown(request: int | None, limit: int | None) -> int | None:
    """The memory people think of: the limit, or else the request."""
    return limit if limit is not None else request


def _events(batch: Iterable[_Alike], now: datetime) -> list[NewEvent]:
    """What clients hear. A lease that merely came back and is given out again says nothing more."""
    return [
        _event(alike.settlement, run, now)
        for alike in batch
        if alike.settlement.decision is not None or not alike.settlement.requeues
        for run in alike.runs
    ]


def _event(settlement: Settlement, run: Unsettled, now: datetime) -> NewEvent:
    job_id = ulid_of_text(run.job_id)
    if settlement.course is Course.CANCEL:
        kind, payload = EventKind.CANCELLED, client_events.cancelled(run.cancel_user)
    else:
        kind, payload = EventKind.FAILED, _failed_payload(settlement, run, pod_name_of(job_id))
    return NewEvent(
        job_set_id=run.job_set_id, job_id=job_id, run_id=run.run_id, kind=kind, created=now, payload=payload
    )


def _failed_payload(settlement: Settlement, run: Unsettled, pod_name: str) -> dict[str, Any]:
    words = Words(message=run.message, reason=run.reason, containers=json.loads(run.containers))
    governing = settlement.case.governing if settlement.decision is not None else None
    place = Place(
        run_id=run.run_id,
        executor=run.executor,
        node=run.node,
        pool=run.pool,
        pod_name=pod_name,
        namespace=run.namespace,
    )
    pod_failure = PodFailure(reason=words.reason, containers=words.containers)
    return client_events.failed(
        reason=settlement.message(words),
        category=settlement.failure.category,
        subcategory=settlement.failure.subcategory,
        retryable=settlement.requeues,
        policy=governing.name if governing else "",
        place=place,
        pod_failure=pod_failure if settlement.is_pod_failure else None,
    )
