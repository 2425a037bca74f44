"""A decision for a run, as settling writes it, without settling."""

from typing import Any

from scheduler.models import Decision, RetryPolicy, Run
from scheduler.models.clock import database_now
from tests.factories import make_policy


def decide(run: Run, **fields: Any) -> Decision:
    """Rule 1 of `oom-grow` (version 1) lets the run's job run again with twice the memory."""
    if not RetryPolicy.objects.filter(name="oom-grow").exists():
        make_policy()
    run.settled_at, run.retryable = database_now(), True
    run.save()
    defaults: dict[str, Any] = {
        "policy_name": "oom-grow",
        "policy_version": 1,
        "rule_index": 0,
        "verdict": "retry",
        "reason": "rule matched",
        "policy_used_before": 0,
        "policy_used_after": 1,
        "policy_limit": 2,
        "global_used_before": 0,
        "global_used_after": 1,
        "global_limit": 5,
        "memory_from_bytes": 64 << 20,
        "memory_to_bytes": 128 << 20,
        "decided_at": database_now(),
    }
    return Decision.objects.create(run=run, job=run.job, **{**defaults, **fields})
