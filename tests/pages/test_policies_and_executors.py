"""What the pages of a policy say when executors, or the configuration, do not go along with it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from policies.documents import policy_from_object
from scheduler.configured import configuration
from scheduler.models import Executor, Node
from scheduler.publishing import create_policy
from tests.factories import make_executor, make_policy
from tests.pages.seen import seen
from tests.people import OLGA

pytestmark = pytest.mark.django_db

RETAINS = "Executor 'local' retains the remains of a run that ends in category 'oom'"
AVOIDS: list[dict[str, Any]] = [
    {"action": "Retry", "onCategory": "oom", "mutate": {"affinity": {"avoidSameNode": True}}}
]


@pytest.fixture
def _retries_at_most(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    monkeypatch.setenv("TACK__SCHEDULING__RETRYPOLICY__ENABLED", "true")
    monkeypatch.setenv("TACK__SCHEDULING__RETRYPOLICY__GLOBALMAXRETRIES", str(request.param))
    monkeypatch.setenv("TACK__SCHEDULING__INDEXEDNODELABELS", "[kubernetes.io/hostname]")
    configuration.cache_clear()
    yield
    monkeypatch.undo()
    configuration.cache_clear()


def test_an_executor_that_retains_a_category_since_is_told_of_on_the_pages_of_its_policies(
    as_bob: Client,
) -> None:
    make_policy("oom-grow")
    make_policy("other", rules=[])
    executor = make_executor("local")
    assert RETAINS not in seen(as_bob.get("/policies/oom-grow")).words

    executor.categories = [{"name": "oom", "disposition": "Retain"}]
    executor.save()
    words = seen(as_bob.get("/policies/oom-grow")).words
    assert "Executors cannot do what it asks." in words
    assert RETAINS in words
    assert "executors cannot do what it asks" not in seen(as_bob.get("/policies/other")).words
    assert seen(as_bob.get("/policies")).words.count("executors cannot do what it asks") == 1


def test_a_category_that_no_executor_knows_any_more_is_told(as_bob: Client) -> None:
    make_policy("oom-grow")
    make_executor("local", categories=[])
    assert "No executor knows the category 'oom'" in seen(as_bob.get("/policies/oom-grow")).words


def test_a_label_nobody_tracks_any_more_is_told_where_nodes_are_avoided(as_bob: Client) -> None:
    make_policy("elsewhere", rules=AVOIDS)
    make_policy("oom-grow")
    make_executor("local", tracked_node_labels=[])
    told = "No executor tracks the node label 'kubernetes.io/hostname'"
    assert told in seen(as_bob.get("/policies/elsewhere")).words
    assert told not in seen(as_bob.get("/policies/oom-grow")).words


def test_nodes_without_the_label_are_told_where_nodes_are_avoided(as_bob: Client) -> None:
    make_policy("elsewhere", rules=AVOIDS)
    make_policy("oom-grow")
    make_executor("local", nodes=3)
    Node.objects.exclude(name="local-1").update(labels={"zone": "a"})
    told = "2 nodes of executor 'local' lack the label 'kubernetes.io/hostname'"
    assert told in seen(as_bob.get("/policies/elsewhere")).words
    assert told not in seen(as_bob.get("/policies/oom-grow")).words


def test_nodes_without_the_label_are_told_on_the_page_of_the_fleet(as_bob: Client) -> None:
    make_executor("local", nodes=3)
    Node.objects.filter(name="local-2").update(labels={})
    told = "1 of the 3 nodes of local lack the label kubernetes.io/hostname (local-2 is one)"
    assert told in seen(as_bob.get("/fleet")).words


def test_a_version_that_is_past_is_not_held_against_executors(as_bob: Client) -> None:
    make_policy("oom-grow")
    make_policy("oom-grow", rules=[])
    make_executor("local", categories=[{"name": "oom", "disposition": "Retain"}])
    assert RETAINS not in seen(as_bob.get("/policies/oom-grow?version=1")).words


def test_an_executor_that_fell_silent_has_no_say(as_bob: Client) -> None:
    make_policy("oom-grow")
    make_executor("local", categories=[{"name": "oom", "disposition": "Retain"}], heartbeat_at=None)
    assert RETAINS not in seen(as_bob.get("/policies/oom-grow")).words


def test_what_is_written_by_force_stays_told(as_bob: Client) -> None:
    make_executor("local", categories=[])
    forced = {"name": "forced", "retryLimit": 1, "defaultAction": "Fail", "rules": AVOIDS}
    create_policy(policy=policy_from_object(forced), actor=OLGA, force=True)
    assert "No executor knows the category 'oom'" in seen(as_bob.get("/policies/forced")).words


@pytest.mark.parametrize("_retries_at_most", [1], indirect=True)
@pytest.mark.usefixtures("_retries_at_most")
def test_a_global_limit_below_the_policys_own_is_told(as_bob: Client) -> None:
    make_policy("oom-grow", retryLimit=3)
    make_policy("modest", retryLimit=1)
    told = "The global limit of 1 is below this policy's limit of 3, so jobs are retried at most once."
    assert told in seen(as_bob.get("/policies/oom-grow")).words
    assert "The global limit of 1" not in seen(as_bob.get("/policies/modest")).words


@pytest.mark.parametrize("_retries_at_most", [0], indirect=True)
@pytest.mark.usefixtures("_retries_at_most")
@pytest.mark.parametrize("address", ["/jobs", "/policies", "/policies/oom-grow", "/queues", "/fleet"])
def test_a_global_limit_of_nothing_is_told_on_every_page(as_bob: Client, address: str) -> None:
    make_policy("oom-grow")
    told = "Retries are switched off: scheduling.retryPolicy.globalMaxRetries is 0."
    assert told in seen(as_bob.get(address)).words


def test_the_list_asks_executors_once_however_many_policies_there_are(
    as_bob: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        make_policy(f"policy-{number}")
    for name in ("a", "b", "c"):
        make_executor(name, categories=[])
    assert Executor.objects.count() == 3
    as_bob.get("/policies")
    with django_assert_max_num_queries(12):
        as_bob.get("/policies")
