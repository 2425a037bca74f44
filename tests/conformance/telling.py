"""What followed in a scenario, in the words of the case files: client events, scheduler events, states, metrics."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from policies.quantity import format_bytes
from scheduler.expiring import LEASE_EXPIRED
from scheduler.metrics import Metric
from scheduler.models import Counter, Decision, Event, RunError
from scheduler.states import EventKind, JobState, UndecidedBecause
from tests.conformance.scenes import Scene, memory_record

ASKING = (EventKind.CANCELLING, EventKind.PREEMPTING, EventKind.REPRIORITIZING)
"""Told when somebody asks: part of what happened, not of what followed."""
FAILED_FOR_THE_SCHEDULER = (JobState.PREEMPTED, JobState.REJECTED)
"""Job states of ours that the case files call failed, except on pages."""


def client_events(scene: Scene) -> list[dict[str, Any]]:
    """What clients heard of the job since the stimulus."""
    rows = Event.objects.filter(job=scene.job_id).exclude(kind__in=ASKING).order_by("number")
    told = [{"type": with_underscores(row.kind)} | _underscored(row.payload) for row in rows]
    sent = scene.case.given.get("client_events_already_sent_by_executor_report", ())
    for kind in (*scene.already_told, *(event["type"] for event in sent)):
        assert told.pop(0)["type"] == with_underscores(kind)
    return [_in_words_of_case(event, scene) for event in told]


def _in_words_of_case(event: dict[str, Any], scene: Scene) -> dict[str, Any]:
    """Where the scheduler finds its own words for a reason, the case has others."""
    if scene.our_words and event.get("reason") == scene.our_words:
        return event | {"reason": scene.case.given["stimulus"]["reason"]}
    return event


def _underscored(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {with_underscores(name): value for name, value in payload.items()}


def with_underscores(name: str) -> str:
    """`leaseExpired` as `lease_expired`."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def scheduler_events(scene: Scene) -> list[dict[str, Any]]:
    """The same under the model's internal names, with those that clients do not hear of."""
    events = [each for event in client_events(scene) for each in _SCHEDULER_EVENTS[event["type"]](event)]
    if scene.run is not None and scene.ran().undecided_because == UndecidedBecause.CANCELLED:
        events.insert(0, {"type": "JobRunCancelled"})
    if scene.job.queued_version > scene.queued_version:
        events.append(_requeue(scene))
    return events


def _requeue(scene: Scene) -> dict[str, Any]:
    given, job = scene.case.given["job"], scene.job
    has_grown = (job.memory_factor, job.memory_static_bytes) != memory_record(scene.case)
    return {
        "type": "JobRequeued",
        "queued_version": job.queued_version,
        "scheduling_info_version": given["scheduling_info_version"] + has_grown + bool(job.avoided_nodes),
        "avoid_nodes": sorted(job.avoided_nodes),
        "memory_bytes": job.memory_request_bytes,
        "memory_record": {
            "memory_factor": job.memory_factor,
            "memory_static": format_bytes(job.memory_static_bytes) if job.memory_static_bytes else "",
        },
    }


def _job_errors(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "type": "JobErrors",
            "terminal": not event["retryable"],
            "reason_kind": _reason_kind(event),
            "failure_category": event["failure_category"],
            "failure_subcategory": event["failure_subcategory"],
            "retry_policy_name": event.get("retry_policy_name", ""),
            "message": event["reason"],
        }
    ]


def _reason_kind(event: Mapping[str, Any]) -> str:
    if event.get("cause") == "Rejected":
        return "job_rejected"
    if "cause" in event:
        return "pod_error"
    if event["reason"] == LEASE_EXPIRED:
        return "lease_expired"
    has_verdict = event["failure_category"] or "retry_policy_name" in event
    return "max_runs_exceeded" if has_verdict else "job_run_preempted"


def _preempted(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "JobRunPreempted", "reason": event["reason"]},
        _run_errors("job_run_preempted", ("", ""), event["reason"]),
    ]


def _run_errors(kind: str, category: tuple[str, str], message: str) -> dict[str, Any]:
    return {
        "type": "JobRunErrors",
        "terminal": True,
        "reason_kind": kind,
        "failure_category": category[0],
        "failure_subcategory": category[1],
        "retry_policy_name": "",
        "message": message,
    }


_SCHEDULER_EVENTS: dict[str, Callable[[Mapping[str, Any]], list[dict[str, Any]]]] = {
    "failed": _job_errors,
    "lease_expired": lambda _: [_run_errors("lease_expired", ("internal", "lease-expired"), LEASE_EXPIRED)],
    "preempted": _preempted,
    "succeeded": lambda _: [{"type": "JobSucceeded"}],
    "cancelled": lambda _: [{"type": "CancelledJob"}],
    "reprioritized": lambda _: [{"type": "ReprioritisedJob"}],
}


def job_state(scene: Scene) -> str:
    """As the scheduler has it; pages tell more."""
    state = scene.job.state
    return "failed" if state in FAILED_FOR_THE_SCHEDULER else state


def seen_on_pages(scene: Scene) -> dict[str, Any]:
    """The states and the error of the run and of the job."""
    seen = {"job_state": scene.job.state, "job_error": scene.job.rejected_because}
    if scene.run is None:
        return seen
    run, error = scene.ran(), RunError.objects.filter(run=scene.run).first()
    return seen | {
        "run_state": run.state,
        "run_error": error.message if error else "",
        "run_failure_category": run.category,
        "run_failure_subcategory": run.subcategory,
    }


def decision_metric(scene: Scene) -> dict[str, str] | None:
    """What was counted, which is what was written down."""
    counted = [count.labels for count, _ in _totals(scene) if count.metric is Metric.DECISIONS]
    written = Decision.objects.values_list("job__queue", "run__pool", "policy_name", "verdict")
    assert counted == list(written)
    return {"policy": counted[0][2], "decision": counted[0][3]} if counted else None


def gang_skip_metric(scene: Scene) -> str | None:
    """The policy under whose name a skipped gang was counted."""
    counted = [count.labels for count, _ in _totals(scene) if count.metric is Metric.GANG_SKIPS]
    return counted[0][0] if counted else None


def _totals(scene: Scene) -> Sequence[tuple[Any, float]]:
    return Counter.objects.totals(reset_every_seconds=scene.config.metrics_reset_seconds)
