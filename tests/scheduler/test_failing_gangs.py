"""Members of a gang that fail: no policy has a say, and the others go on as they are."""

from typing import Any

import pytest

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.metrics import Count, Metric
from scheduler.models import Counter, Decision, Job, Run
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

ON = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), indexed_node_labels=("kubernetes.io/hostname",)
)
GANG: dict[str, Any] = {"gang_id": "together", "gang_cardinality": 2}


@pytest.fixture(autouse=True)
def _queue() -> None:
    make_policy("oom-grow")
    make_queue("nightly", policies=("oom-grow",))
    make_executor("local")


def end(job: Job, state: RunState, **fields: Any) -> Job:
    make_run(job, state=state, **fields)
    settle_runs(config=ON)
    job.refresh_from_db()
    return job


def skips() -> dict[Count, float]:
    totals = Counter.objects.totals(reset_every_seconds=ON.metrics_reset_seconds)
    return {count: total for count, total in totals if count.metric is Metric.GANG_SKIPS}


def test_a_member_that_fails_ends_without_a_decision_and_the_others_run_on() -> None:
    failing, other = make_job(**GANG), make_job(**GANG)
    make_run(other)
    assert end(failing, RunState.FAILED).state == "failed"
    other.refresh_from_db()
    assert (other.state, Decision.objects.count()) == ("running", 0)
    assert Run.objects.get(job=failing).undecided_because == "gang"
    assert skips() == {Count(Metric.GANG_SKIPS, ("oom-grow",)): 1}


def test_a_member_whose_lease_comes_back_waits_again_as_any_job() -> None:
    job = end(make_job(**GANG), RunState.LEASE_RETURNED, attempted=True)
    assert (job.state, job.avoided_nodes) == ("queued", ["local-1"])
    assert sum(skips().values()) == 1


def test_a_gang_of_one_is_a_job_like_any_other() -> None:
    job = end(make_job(gang_id="alone", gang_cardinality=1), RunState.FAILED)
    assert (job.state, skips()) == ("queued", {})


def test_where_no_policy_would_have_been_asked_nothing_is_counted() -> None:
    make_queue("bare")
    job = end(make_job("bare", **GANG), RunState.FAILED)
    assert (job.state, skips()) == ("failed", {})
