"""Queues: the list, the page of each, and what operators change."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.models import PoolRound, Queue, QueuePolicy
from scheduler.placement import Requirements
from scheduler.states import JobState
from tests.factories import make_executor, make_job, make_policy, make_queue
from tests.pages.conftest import HTMX
from tests.pages.seen import seen

pytestmark = pytest.mark.django_db


def attached(queue: str) -> list[str]:
    return list(
        QueuePolicy.objects.filter(queue=queue).order_by("ordinal").values_list("policy_id", flat=True)
    )


def test_the_list_says_what_each_queue_holds_and_which_policy_decides(as_bob: Client) -> None:
    make_policy("oom-grow")
    make_policy("spare")
    make_queue("nightly", policies=("oom-grow", "spare"))
    make_job("nightly")
    make_job("nightly", state=JobState.FAILED)
    page = seen(as_bob.get("/queues"))
    assert "1 queue, 1 job queued, 0 on executors" in page.words
    assert "nightly oom-grow, then spare oom-grow, then spare 1 0 1 0 1 alice open" in page.words
    assert page.links["nightly"] == "/queues/nightly"
    assert page.links["1"] == "/jobs?queue=nightly&state=failed"


def test_who_may_not_make_queues_reads_why(as_bob: Client) -> None:
    page = seen(as_bob.get("/queues"))
    assert "New queues are made by operators." in page.words
    assert "New queue" not in page.links
    assert as_bob.get("/new-queue").status_code == 403
    assert as_bob.post("/new-queue", {"name": "mine"}).status_code == 403
    assert not Queue.objects.exists()


def test_a_queue_is_made_with_its_policies_in_order(as_olga: Client) -> None:
    make_policy("first")
    make_policy("second")
    form = {
        "name": "nightly",
        "priorityFactor": "2.5",
        "userOwners": "mira, jonas",
        "groupOwners": "render",
        "policy": ["second", "", "first"],
    }
    assert as_olga.post("/new-queue", form).headers["Location"] == "/queues/nightly"
    queue = Queue.objects.get()
    assert (queue.priority_factor, queue.owners, queue.group_owners) == (2.5, ["mira", "jonas"], ["render"])
    assert attached("nightly") == ["second", "first"]
    words = seen(as_olga.get("/queues/nightly")).words
    assert "Queue nightly is there." in words
    assert "second decides about failures." in words


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "no blanks"}, "name"),
        ({"name": "taken"}, "name"),
        ({"name": "a", "priorityFactor": "0.5"}, "priorityFactor"),
        ({"name": "a", "priorityFactor": "much"}, "priorityFactor"),
        ({"name": "a", "priorityFactor": "nan"}, "priorityFactor"),
    ],
)
def test_a_problem_stands_under_its_field(as_olga: Client, typed: dict[str, str], field: str) -> None:
    make_queue("taken")
    answer = as_olga.post("/new-queue", {"userOwners": "mira", **typed})
    assert answer.status_code == 400
    fields = {each["name"]: each for each in seen(answer).attributes("input") if each.get("name")}
    assert fields[field]["aria-invalid"] == "true"
    assert fields["userOwners"]["value"] == "mira"
    assert Queue.objects.count() == 1


def test_a_policy_that_does_not_exist_is_told(as_olga: Client) -> None:
    answer = as_olga.post("/new-queue", {"name": "a", "policy": ["gone"]})
    assert answer.status_code == 400
    assert 'retry policies do not exist: "gone"' in seen(answer).words


def test_an_edit_leaves_what_the_form_does_not_show(as_olga: Client) -> None:
    grant = [{"subjects": [{"kind": "User", "name": "bob"}], "verbs": ["submit"]}]
    make_queue("nightly", permissions=grant, labels={"team": "render"}, cordoned=True)
    form = {"priorityFactor": "3", "userOwners": "mira", "groupOwners": ""}
    assert as_olga.post("/queues/nightly/edit", form).headers["Location"] == "/queues/nightly"
    queue = Queue.objects.get()
    assert (queue.priority_factor, queue.owners) == (3.0, ["mira"])
    assert (queue.permissions, queue.labels, queue.cordoned) == (grant, {"team": "render"}, True)


def test_policies_are_attached_in_the_order_of_the_form(as_olga: Client) -> None:
    make_policy("first")
    make_policy("second")
    make_queue("nightly", policies=("first",))
    as_olga.post("/queues/nightly/policies", {"policy": ["second", "first", ""]})
    assert attached("nightly") == ["second", "first"]
    assert "In queue nightly second decides from now on." in seen(as_olga.get("/queues/nightly")).words
    as_olga.post("/queues/nightly/policies", {"detach": "second"})
    assert attached("nightly") == ["first"]


def test_a_policy_chosen_in_two_places_is_refused_and_nothing_is_detached(as_olga: Client) -> None:
    make_policy("first")
    make_policy("second")
    make_queue("nightly", policies=("first", "second"))
    answer = as_olga.post("/queues/nightly/policies", {"policy": ["second", "second", ""]})
    assert answer.status_code == 400
    page = seen(answer)
    assert "second stands in two places, and a policy has one. Nothing was changed" in page.words
    assert [each.get("aria-invalid") for each in page.attributes("select")][-3:] == ["true", "true", None]
    answer = as_olga.post("/queues/nightly/edit", {"policy": ["second", "second"]})
    assert "second stands in two places" in seen(answer).words
    assert attached("nightly") == ["first", "second"]


def test_adding_a_policy_again_from_its_page_changes_nothing(as_olga: Client) -> None:
    make_policy("first")
    make_queue("nightly", policies=("first",))
    answer = as_olga.post("/queues/nightly/policies", {"add": "first", "from": "first"})
    assert answer.headers["Location"] == "/policies/first"
    assert attached("nightly") == ["first"]


def test_labels_stand_apart_from_owners(as_bob: Client) -> None:
    make_queue("nightly", labels={"team": "render"})
    assert "Labels team render" in seen(as_bob.get("/queues/nightly")).words


def test_who_may_not_attach_is_refused(as_alice: Client) -> None:
    make_policy("first")
    make_queue("nightly")
    page = seen(as_alice.get("/queues/nightly"))
    assert "Queues are changed by operators." in page.words
    assert as_alice.post("/queues/nightly/policies", {"policy": ["first"]}).status_code == 403
    assert as_alice.post("/queues/nightly/cordon", {"cordoned": "true"}).status_code == 403
    assert as_alice.post("/queues/nightly/delete").status_code == 403
    assert attached("nightly") == []


def test_a_queue_is_cordoned_and_uncordoned(as_olga: Client) -> None:
    make_queue("nightly")
    as_olga.post("/queues/nightly/cordon", {"cordoned": "true"})
    assert "Queue nightly starts no more jobs." in seen(as_olga.get("/queues/nightly")).words
    as_olga.post("/queues/nightly/cordon", {"cordoned": "false"})
    assert "Queue nightly starts jobs again." in seen(as_olga.get("/queues/nightly")).words


def test_an_empty_queue_is_deleted_after_a_question(as_olga: Client) -> None:
    make_queue("nightly")
    assert "Delete queue nightly?" in seen(as_olga.get("/queues/nightly/delete")).words
    assert as_olga.get("/queues/nightly/delete", headers=HTMX).content.strip().startswith(b"<h2")
    assert as_olga.post("/queues/nightly/delete").headers["Location"] == "/queues"
    assert "Queue nightly was deleted." in seen(as_olga.get("/queues")).words


def test_a_queue_that_holds_jobs_is_not_deleted(as_olga: Client) -> None:
    make_job("nightly")
    answer = as_olga.post("/queues/nightly/delete")
    assert answer.status_code == 409
    assert "Queue 'nightly' has jobs, and jobs are kept." in seen(answer).words


def test_a_queue_that_is_not_there_is_told(as_olga: Client) -> None:
    answer = as_olga.get("/queues/nothing")
    assert answer.status_code == 404
    assert "There is no queue 'nothing'." in seen(answer).words
    assert as_olga.post("/queues/nothing/policies", {"policy": []}).status_code == 404


def test_a_queue_may_be_called_new(as_olga: Client) -> None:
    make_queue("new")
    assert "Retry policies" in seen(as_olga.get("/queues/new")).words


@pytest.mark.parametrize("queues", [1, 50])
def test_the_number_of_queries_does_not_grow_with_the_queues(
    as_olga: Client, queues: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_policy("first")
    for number in range(queues):
        make_job(make_queue(f"queue-{number}", policies=("first",)))
    with django_assert_num_queries(8):
        as_olga.get("/queues")


def test_why_jobs_wait_is_told_with_how_many(as_bob: Client) -> None:
    make_queue("nightly")
    assert "Why jobs wait" not in seen(as_bob.get("/queues/nightly")).words
    for _ in range(2):
        make_job("nightly")
    large = make_job("nightly", memory_bytes=1 << 40)
    pool = make_executor().pool
    PoolRound.objects.create(pool=pool, unplaced={Requirements.of(large).key: "No node has the memory."})
    words = seen(as_bob.get("/queues/nightly")).words
    assert "2 jobs Waiting for the next round. 1 job No node has the memory." in words
