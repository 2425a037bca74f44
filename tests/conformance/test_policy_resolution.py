"""policy_resolution.json: which policy decides about a failed run, if any."""

from typing import Any

import pytest

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.metrics import Metric
from scheduler.models import Counter, Decision
from scheduler.settlement import FAIL_FAST
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.conformance.cases import Case, cases
from tests.factories import make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

GIVEN = (
    "config",
    "queue_retry_policies",
    "queue_lookup_available",
    "policies_in_cache",
    "job",
    "run_error_kind",
)
ENDS = {
    "pod_error": RunState.FAILED,
    "pod_lease_returned": RunState.LEASE_RETURNED,
    "lease_expired": RunState.LEASE_EXPIRED,
}
UNREADABLE = "Perhaps"


def _make_policies(case: Case) -> None:
    readable = case.given["policies_in_cache"]
    for name in {*readable, *case.given["queue_retry_policies"]}:
        make_policy(name, defaultAction="Fail" if name in readable else UNREADABLE)


def _config(given: dict[str, Any]) -> Configuration:
    return Configuration(
        retry_policy=RetryPolicyConfiguration(
            enabled=given["flag_enabled"], default_policy_name=given["default_policy_name"]
        ),
        indexed_node_labels=("kubernetes.io/hostname",),
    )


@pytest.mark.parametrize("case", cases("policy_resolution.json"))
def test_the_policy_that_decides_is_found_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(GIVEN, ("engine_decides", "deciding_policy", "gang_skip_metric_policy_label"))
    assert case.given["queue_lookup_available"]
    _make_policies(case)
    queue = make_queue(policies=tuple(case.given["queue_retry_policies"]))
    job = make_job(queue, **_fields(case.given["job"]))
    run = make_run(job, state=ENDS[case.given["run_error_kind"]])
    config = _config(case.given["config"])
    settle_runs(config=config)
    decision = Decision.objects.filter(run=run).first()
    case.check(
        {
            "engine_decides": decision is not None,
            "deciding_policy": decision.policy_name if decision else None,
            "gang_skip_metric_policy_label": _gang_skips(config),
        }
    )


def _fields(job: dict[str, Any]) -> dict[str, Any]:
    fail_fast, members = job["fail_fast_annotation"], job["gang_cardinality"]
    fields: dict[str, Any] = {"annotations": {FAIL_FAST: fail_fast} if fail_fast else {}}
    return fields if members is None else {**fields, "gang_id": "together", "gang_cardinality": members}


def _gang_skips(config: Configuration) -> str | None:
    """The policy under whose name a gang that is skipped was counted."""
    totals = Counter.objects.totals(reset_every_seconds=config.metrics_reset_seconds)
    return next((count.labels[0] for count, _ in totals if count.metric is Metric.GANG_SKIPS), None)
