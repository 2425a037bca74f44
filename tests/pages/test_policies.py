"""Retry policies: the list, and the page of each."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.models import QueuePolicy, RetryPolicy
from scheduler.publishing import delete_policy
from tests.factories import make_policy, make_queue
from tests.pages.conftest import HTMX
from tests.pages.seen import seen
from tests.pages.stories import retried_job
from tests.people import OLGA

pytestmark = pytest.mark.django_db


def test_the_list_says_where_each_policy_decides(as_bob: Client) -> None:
    make_policy("oom-grow", note="Double the memory")
    make_policy("spare")
    make_queue("nightly", policies=("oom-grow", "spare"))
    page = seen(as_bob.get("/policies"))
    assert "2 retry policies" in page.words
    assert (
        "oom-grow Retries at most 2 times. 1 1 Retries at most 2 times. nightly Double the memory olga"
        in page.words
    )
    assert "spare Retries at most 2 times. 1 1 Retries at most 2 times. no queue" in page.words
    assert page.links["oom-grow"] == "/policies/oom-grow"
    assert page.links["nightly"] == "/queues/nightly"


def test_without_policies_the_list_says_what_that_means(as_olga: Client) -> None:
    page = seen(as_olga.get("/policies"))
    assert "Without one, a failed run fails its job." in page.words
    assert page.links["New policy"] == "/new-policy"


def test_who_may_not_write_policies_reads_why(as_bob: Client) -> None:
    page = seen(as_bob.get("/policies"))
    assert "New policy" not in page.links
    assert "Policies are written by operators." in page.words
    assert as_bob.get("/new-policy").status_code == 403


def test_rules_are_read_as_sentences(as_bob: Client) -> None:
    make_policy(rules=[
        {"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2}}}},
        {"action": "Retry", "onCategory": "gpu", "mutate": {"affinity": {"avoidSameNode": True}}},
        {"action": "Fail", "onCategory": "user-code"},
    ])  # fmt: skip
    words = seen(as_bob.get("/policies/oom-grow")).words
    assert "1 oom Retries when the category is oom, with twice the memory." in words
    assert "2 gpu Retries when the category is gpu, away from every node the job failed on." in words
    assert "3 user-code Fails at once when the category is user-code." in words
    assert "Fails when no rule matches. Retries at most 2 times." in words


def test_every_version_is_kept_and_shown_with_what_it_changed(as_olga: Client) -> None:
    make_policy(note="first")
    make_policy(note="one more", retryLimit=3)
    page = seen(as_olga.get("/policies/oom-grow"))
    assert "2 in force olga one more olga" in page.words
    assert "Version 1 to version 2 1 line out, 1 line in" in page.words
    assert "− retryLimit: 2" in page.words
    assert "+ retryLimit: 3" in page.words

    old = seen(as_olga.get("/policies/oom-grow?version=1"))
    assert "version 2 is in force" in old.words
    assert old.links["Restore version 1…"] == "/policies/oom-grow/edit?from=1"


@pytest.mark.parametrize("version", ["9", "0", "nine", "99999999999"])
def test_a_version_that_is_not_there_is_told(as_olga: Client, version: str) -> None:
    make_policy()
    assert as_olga.get(f"/policies/oom-grow?version={version}").status_code in (400, 404)


def test_recent_decisions_lead_to_their_jobs(as_bob: Client) -> None:
    job = retried_job()
    page = seen(as_bob.get("/policies/oom-grow"))
    assert "retry" in page.words
    assert "1/2 64Mi to 128Mi" in page.words
    assert page.links[job.id] == f"/jobs/{job.id}"


def test_a_policy_is_attached_and_detached_on_its_page(as_olga: Client) -> None:
    make_policy()
    make_queue("nightly")
    form = {"queue": "nightly", "add": "oom-grow", "from": "oom-grow"}
    assert as_olga.post("/attach-policy", form).headers["Location"] == "/policies/oom-grow"
    page = seen(as_olga.get("/policies/oom-grow"))
    assert "1 nightly decides" in page.words
    assert "In queue nightly oom-grow decides from now on." in page.words

    form = {"detach": "oom-grow", "from": "oom-grow"}
    assert as_olga.post("/queues/nightly/policies", form).headers["Location"] == "/policies/oom-grow"
    assert "Attached to no queue." in seen(as_olga.get("/policies/oom-grow")).words


def test_an_attached_policy_is_deleted_only_when_it_is_to_be_detached(as_olga: Client) -> None:
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    question = seen(as_olga.get("/policies/oom-grow")).links["Delete…"]
    assert "It is attached to 1 queue: nightly." in seen(as_olga.get(question)).words
    assert as_olga.get(question, headers=HTMX).content.strip().startswith(b'<h2 id="dialog-head">')

    refused = as_olga.post(question)
    assert refused.status_code == 409
    assert "Policy 'oom-grow' is attached to queue 'nightly'. Detach it first, or delete it with detach." in (
        seen(refused).words
    )
    assert RetryPolicy.objects.filter(name="oom-grow").exists()

    assert as_olga.post(question, {"detach": "true"}).headers["Location"] == "/policies"
    assert not QueuePolicy.objects.exists()
    assert "Policy oom-grow was deleted and detached from nightly." in seen(as_olga.get("/policies")).words


def test_versions_of_a_deleted_policy_can_be_read(as_bob: Client) -> None:
    make_policy()
    delete_policy(name="oom-grow", actor=OLGA)
    assert as_bob.get("/policies/oom-grow").status_code == 404
    page = seen(as_bob.get("/policies/oom-grow?version=1"))
    assert "Deleted; its versions are kept for the decisions that refer to them." in page.words
    assert "Edit" not in page.links


def test_a_policy_that_cannot_be_read_says_what_is_wrong(as_olga: Client) -> None:
    make_policy(retryLimit=-1)
    make_queue("nightly", policies=("oom-grow",))
    assert "cannot be read" in seen(as_olga.get("/policies")).words
    words = seen(as_olga.get("/policies/oom-grow")).words
    assert "This version cannot be read." in words
    assert "retryLimit" in words
    assert as_olga.get("/policies/oom-grow/edit").status_code == 200


@pytest.mark.parametrize(("person", "address"), [("bob", "delete"), ("bob", "edit"), ("alice", "delete")])
def test_who_may_not_change_a_policy_is_refused(
    as_bob: Client, as_alice: Client, person: str, address: str
) -> None:
    make_policy()
    client = {"bob": as_bob, "alice": as_alice}[person]
    assert client.get(f"/policies/oom-grow/{address}").status_code == 403
    assert client.post(f"/policies/oom-grow/{address}").status_code == 403


@pytest.mark.parametrize("policies", [1, 50])
def test_the_number_of_queries_does_not_grow_with_the_policies(
    as_olga: Client, policies: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(policies):
        make_policy(f"policy-{number}")
        make_queue(f"queue-{number}", policies=(f"policy-{number}",))
    with django_assert_num_queries(9):
        as_olga.get("/policies")
