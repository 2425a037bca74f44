"""Answers of the API for tests: one job, its runs, a policy, a queue, as Tack gives them."""

from typing import Any

JOB_ID = "01k4zq7d3w8v2n5x9c6b1m0tfa"
MEBIBYTE = 1024 * 1024
POLICY_TEXT = """\
apiVersion: armadaproject.io/v1beta1
kind: RetryPolicy
name: oom-grow
retryLimit: 2
defaultAction: Fail
rules:
  - action: Retry
    onCategory: oom
    mutate: {resources: {memory: {factor: 2}}}
"""
SENTENCE = "Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi"


def policy_view(**changes: Any) -> dict[str, Any]:
    """A PolicyView."""
    rule = {"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2.0}}}}
    document = {"name": "oom-grow", "retryLimit": 2, "defaultAction": "Fail", "rules": [rule]}
    return {
        "policy": document,
        "version": 1,
        "note": "",
        "author": "olga",
        "createdAt": "2026-03-01T12:00:00Z",
        "queues": ["nightly"],
    } | changes


def queue_view(name: str, **changes: Any) -> dict[str, Any]:
    """A queue as the API answers it."""
    return {
        "name": name,
        "priorityFactor": 1.0,
        "userOwners": [],
        "groupOwners": [],
        "permissions": [],
        "cordoned": False,
        "labels": {},
        "retryPolicies": [],
        "jobs": {"queued": 2},
    } | changes


def job_view(job_id: str = JOB_ID, **changes: Any) -> dict[str, Any]:
    """A JobView of a job that succeeded at its second try."""
    return {
        "jobId": job_id,
        "queue": "nightly",
        "jobSetId": "report",
        "owner": "alice",
        "namespace": "default",
        "priority": 0,
        "state": "succeeded",
        "stateChangedAt": "2026-03-01T12:00:20Z",
        "submittedAt": "2026-03-01T12:00:00Z",
        "endedAt": "2026-03-01T12:00:20Z",
        "annotations": {},
        "labels": {},
        "runCount": 2,
        "resources": {
            "cpuMillicores": 100,
            "memoryRequestBytes": 128 * MEBIBYTE,
            "memoryLimitBytes": 128 * MEBIBYTE,
        },
        "submittedMemoryBytes": 64 * MEBIBYTE,
        "avoidedNodes": [],
        "waitingBecause": None,
        "lastFailure": {"category": "oom", "subcategory": ""},
        "lastVerdict": "retry",
    } | changes


def decision_view(**changes: Any) -> dict[str, Any]:
    """A DecisionView: a retry with twice the memory."""
    return {
        "runId": "r1",
        "jobId": JOB_ID,
        "policy": "oom-grow",
        "version": 1,
        "ruleIndex": 0,
        "verdict": "retry",
        "reason": "matched rule: Retry",
        "sentence": SENTENCE,
        "policyBudget": {"before": {"used": 0, "limit": 2}, "after": {"used": 1, "limit": 2}},
        "globalBudget": {"before": {"used": 0, "limit": 5}, "after": {"used": 1, "limit": 5}},
        "memoryFromBytes": 64 * MEBIBYTE,
        "memoryToBytes": 128 * MEBIBYTE,
        "avoidsNodes": [],
        "decidedAt": "2026-03-01T12:00:10Z",
    } | changes


def run_view(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A RunView of a run that ended well."""
    return {
        "runId": f"r{number}",
        "jobId": JOB_ID,
        "number": number,
        "executor": "local",
        "node": "local-1",
        "state": "succeeded",
        "leasedAt": "2026-03-01T12:00:01Z",
        "startedAt": "2026-03-01T12:00:02Z",
        "endedAt": "2026-03-01T12:00:09Z",
        "exitCode": 0,
        "signal": None,
        "category": None,
        "subcategory": None,
        "retryable": None,
        "memoryLimitBytes": 64 * MEBIBYTE,
        "memoryPeakBytes": 60 * MEBIBYTE,
        "killedBy": "",
        "enforcedBy": "cgroup2",
        "error": None,
        "undecidedBecause": None,
        "decision": None,
    } | changes


def failed_run(**changes: Any) -> dict[str, Any]:
    """A RunView of a run that ran out of memory and is retried."""
    error = {
        "message": "Container main failed with exit code 137 because OOMKilled",
        "reason": "OOM",
        "containers": [],
    }
    failed = {"state": "failed", "exitCode": 137, "category": "oom", "subcategory": "", "retryable": True}
    return run_view(1, **failed, killedBy="memory", error=error, decision=decision_view()) | changes


def event(number: int, kind: str, *, job_id: str = JOB_ID, **fields: Any) -> dict[str, Any]:
    """An event of a page of events."""
    message = {"jobId": job_id, "jobSetId": "report", "queue": "nightly", "created": "2026-03-01T12:00:00Z"}
    return {"id": number, "message": {kind: message | fields}}


def event_page(*events: dict[str, Any]) -> dict[str, Any]:
    """A page of events."""
    return {"events": list(events), "last": events[-1]["id"] if events else 0}
