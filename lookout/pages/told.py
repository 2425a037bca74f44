"""Events of a job in a few words each, for people."""

from collections.abc import Mapping
from typing import Any

from policies.wording import category_text
from scheduler.models import Event
from scheduler.states import EventKind


def told(event: Event, *, owner: str) -> str:
    """What happened, from the fields that clients see as well. A kind that needs no words has none."""
    payload: Mapping[str, Any] = event.payload
    match EventKind(event.kind):
        case EventKind.SUBMITTED:
            return f"by {owner}"
        case EventKind.LEASED:
            return f"by {payload.get('clusterId', '')}, pool {payload.get('pool', '')}"
        case EventKind.PENDING:
            return str(payload.get("podName", ""))
        case EventKind.RUNNING | EventKind.SUCCEEDED:
            return f"on {payload['nodeName']}" if payload.get("nodeName") else ""
        case EventKind.FAILED:
            return _failed(payload)
        case EventKind.LEASE_RETURNED:
            tried = "attempted" if payload.get("runAttempted") else "not attempted"
            return f"{tried}: {payload.get('reason', '')}"
        case EventKind.CANCELLING | EventKind.CANCELLED:
            return f"by {payload['requestor']}" if payload.get("requestor") else ""
        case EventKind.REPRIORITIZING | EventKind.REPRIORITIZED:
            return f"by {payload.get('requestor', '')}, priority {payload.get('newPriority', '')}"
        case EventKind.PREEMPTING:
            return f"by {payload.get('requestor', '')}: {payload.get('reason', '')}"
        case _:
            return str(payload.get("reason", ""))


def _failed(payload: Mapping[str, Any]) -> str:
    category = category_text(payload.get("failureCategory", ""), payload.get("failureSubcategory", ""))
    parts = [f"category {category}", f"retryable: {str(bool(payload.get('retryable'))).lower()}"]
    if payload.get("retryPolicyName"):
        parts.append(f"policy {payload['retryPolicyName']}")
    if payload.get("cause") == "Rejected":
        parts = [f"rejected: {payload.get('reason', '')}"]
    return ", ".join(parts)
