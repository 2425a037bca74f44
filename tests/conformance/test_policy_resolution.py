"""policy_resolution.json: which policy decides about a failed run, if any."""

from typing import Any

import pytest

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.models import Decision
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
    job = case.given["job"]
    if job["gang_cardinality"] is not None:
        pytest.skip("there are no gangs yet")
    assert case.given["queue_lookup_available"]
    _make_policies(case)
    fail_fast = job["fail_fast_annotation"]
    queue = make_queue(policies=tuple(case.given["queue_retry_policies"]))
    run = make_run(
        make_job(queue, annotations={"armadaproject.io/failFast": fail_fast} if fail_fast else {}),
        state=ENDS[case.given["run_error_kind"]],
    )
    settle_runs(config=_config(case.given["config"]))
    decision = Decision.objects.filter(run=run).first()
    case.check(
        {
            "engine_decides": decision is not None,
            "deciding_policy": decision.policy_name if decision else None,
            "gang_skip_metric_policy_label": None,
        }
    )
