"""What a settlement makes of rows: the decision, what becomes of the job, and what clients hear."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from scheduler import client_events
from scheduler.client_events import Place, PodFailure, pod_name_of
from scheduler.models.decisions import Decision
from scheduler.models.events import NewEvent
from scheduler.models.jobs import Outcome
from scheduler.models.ulids import ulid_of_text
from scheduler.settlement import Course, Settlement, Words
from scheduler.states import EventKind, JobState


class Unsettled(NamedTuple):
    """A run that awaits settling: which it is, where it was, and what was said of its end.

    A storm makes tens of thousands: hence a tuple, in the order of the query.
    """

    run_id: str
    job_id: str
    """Both as the database writes a uuid."""
    job_set_id: int
    executor: str
    node: str
    pool: str
    namespace: str
    cancel_user: str
    tries: int
    """How often it was tried before this claim."""
    message: str
    reason: str
    containers: str
    """As JSON."""


_STATES = {
    Course.REQUEUE: JobState.QUEUED,
    Course.FAIL: JobState.FAILED,
    Course.CANCEL: JobState.CANCELLED,
}


def outcome_of(settlement: Settlement) -> Outcome:
    """What becomes of the jobs that were settled so."""
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


def decision_of(settlement: Settlement) -> Decision:
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


def event_of(settlement: Settlement, run: Unsettled, now: datetime) -> NewEvent:
    """What clients hear of one run and its job."""
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
