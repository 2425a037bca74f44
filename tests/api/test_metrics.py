"""GET /metrics: what Prometheus reads, and who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from lookout.access import ensure_person, issue_token
from scheduler.actors import Role
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.metrics import round_time
from scheduler.models import Counter, Executor, Run
from scheduler.models.clock import database_now
from scheduler.queries.measurements import measure
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

ON = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), indexed_node_labels=("kubernetes.io/hostname",)
)
type Sample = tuple[str, frozenset[tuple[str, str]]]


def scrape() -> dict[Sample, float]:
    """Every sample, by name and labels, as a reader's Prometheus gets it."""
    secret = issue_token(ensure_person("rita", role=Role.READER))
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def sample(name: str, **labels: str) -> Sample:
    return f"tack_scheduler_{name}", frozenset(labels.items())


def fail(**fields: Any) -> Run:
    return make_run(make_job(**fields), state=RunState.FAILED, subcategory="main", pool="default")


@pytest.fixture(autouse=True)
def _queue() -> None:
    make_policy("oom-grow")
    make_queue("nightly", policies=("oom-grow",))
    make_executor("local")


def test_decisions_are_counted_by_queue_pool_policy_and_verdict() -> None:
    fail()
    fail()
    settle_runs(config=ON)
    told = {"queue": "nightly", "pool": "default", "policy": "oom-grow", "decision": "retry"}
    assert scrape()[sample("retry_policy_decisions_total", **told)] == 2


def test_failures_are_counted_by_queue_and_by_node_with_policies_switched_off_as_well() -> None:
    fail()
    settle_runs(config=Configuration())
    found, category = scrape(), {"category": "oom", "subcategory": "main", "pool": "default"}
    assert found[sample("job_error_classification_by_queue", queue="nightly", **category)] == 1
    by_node = {"node": "local-1", "cluster": "local", **category}
    assert found[sample("job_error_classification_by_node", **by_node)] == 1


def test_gangs_that_are_skipped_are_counted_by_policy() -> None:
    fail(gang_id="together", gang_cardinality=2)
    settle_runs(config=ON)
    found = scrape()
    assert found[sample("retry_policy_gang_skipped_total", policy="oom-grow")] == 1
    assert not [name for name, _ in found if "decisions" in name]


def test_lease_returns_are_no_failures() -> None:
    make_run(make_job(), state=RunState.LEASE_RETURNED, attempted=True)
    settle_runs(config=ON)
    assert not [name for name, _ in scrape() if "job_error" in name]


def test_what_awaits_a_decision_is_measured_with_the_age_of_the_oldest() -> None:
    run = fail()
    Run.objects.filter(id=run.id).update(ended_at=database_now() - timedelta(minutes=5))
    fail()
    found = scrape()
    assert found[sample("runs_awaiting_decision")] == 2
    assert 300 <= found[sample("oldest_run_awaiting_decision_seconds")] < 330


def test_where_nothing_waits_the_age_is_nothing() -> None:
    found = scrape()
    assert found[sample("runs_awaiting_decision")] == 0
    assert found[sample("oldest_run_awaiting_decision_seconds")] == 0


def test_the_time_of_a_batch_is_a_histogram() -> None:
    fail()
    settle_runs(config=ON)
    found = scrape()
    assert found[sample("settle_seconds_count")] == 1
    assert found[sample("settle_seconds_bucket", le="10.0")] == 1
    assert 0 < found[sample("settle_seconds_sum")] < 10


def test_the_times_of_rounds_add_up_below_each_bound() -> None:
    for seconds in (0.02, 0.2, 60.0):
        Counter.objects.add(round_time("default", seconds), reset_every_seconds=0.0)
    found = scrape()
    below = [
        found[sample("round_seconds_bucket", pool="default", le=le)]
        for le in ("0.01", "0.025", "10.0", "+Inf")
    ]
    assert below == [0, 1, 2, 3]
    assert found[sample("round_seconds_sum", pool="default")] == pytest.approx(60.22)


def test_the_age_of_each_heartbeat_is_told() -> None:
    Executor.objects.filter(name="local").update(heartbeat_at=database_now() - timedelta(seconds=90))
    age = scrape()[sample("executor_heartbeat_age_seconds", cluster="local", pool="default")]
    assert 90 <= age < 120


def test_measuring_takes_three_queries_whatever_there_is(django_assert_num_queries: Any) -> None:
    for number in range(5):
        make_executor(f"more-{number}")
        fail()
    settle_runs(config=ON)
    with django_assert_num_queries(3):
        measure(config=ON)


def test_words_of_others_stay_within_their_label() -> None:
    words = 'a"} 1\\\n# TYPE x'
    make_run(make_job(), state=RunState.FAILED, category=words, pool="default")
    settle_runs(config=ON)
    told = {"queue": "nightly", "pool": "default", "category": words, "subcategory": ""}
    assert scrape()[sample("job_error_classification_by_queue", **told)] == 1


@pytest.mark.parametrize("query", ["", "?name[]=tack"])
def test_who_is_nobody_gets_nothing(query: str) -> None:
    assert Client().get(f"/metrics{query}").status_code == 401


def test_nothing_can_be_sent_there() -> None:
    secret = issue_token(ensure_person("rita", role=Role.READER))
    answer = Client().post("/metrics", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 405
