"""Queues over REST."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Role
from scheduler.models import PoolRound, Queue
from tests.api.caller import Caller, caller
from tests.factories import make_executor, make_job, make_policy, make_queue

pytestmark = pytest.mark.django_db

NIGHTLY = {
    "name": "nightly",
    "priorityFactor": 2.0,
    "userOwners": ["alice"],
    "groupOwners": ["data"],
    "permissions": [{"subjects": [{"kind": "Group", "name": "ai"}], "verbs": ["submit", "cancel"]}],
    "cordoned": True,
    "labels": {"team": "data"},
    "retryPolicies": ["oom-grow", "other"],
}


@pytest.fixture
def olga() -> Caller:
    return caller("olga", Role.OPERATOR)


def test_a_queue_comes_back_as_it_was_written(olga: Caller) -> None:
    make_policy("oom-grow")
    make_policy("other")
    made = olga.post("v1/queues", NIGHTLY)
    assert made.status == 201
    jobs = made.body.pop("jobs")
    cordon = {"cordonedBy": "olga", "cordonReason": ""}
    assert made.body == NIGHTLY | cordon
    assert set(jobs.values()) == {0}
    assert "queued" in jobs
    read = olga.get("v1/queues/nightly")
    assert read.body == NIGHTLY | cordon | {"jobs": jobs}
    assert olga.get("v1/queues").body == {"queues": [read.body]}


def test_what_is_left_out_has_its_default(olga: Caller) -> None:
    made = olga.post("v1/queues", {"name": "plain"})
    assert made.status == 201
    assert (made.body["priorityFactor"], made.body["cordoned"], made.body["retryPolicies"]) == (
        1.0,
        False,
        [],
    )


def test_a_queue_may_be_written_as_yaml(olga: Caller) -> None:
    made = olga.call(
        "POST", "v1/queues", body="name: plain\ncordoned: true\n", content_type="application/yaml"
    )
    assert (made.status, made.body["cordoned"]) == (201, True)


def test_a_name_in_use_is_refused(olga: Caller) -> None:
    make_queue("nightly")
    refused = olga.post("v1/queues", {"name": "nightly"})
    assert (refused.status, refused.error["code"]) == (409, "already_exists")


def test_an_update_replaces_everything(olga: Caller) -> None:
    make_policy("oom-grow")
    make_policy("other")
    olga.post("v1/queues", NIGHTLY)
    changed = olga.put("v1/queues/nightly", {"priorityFactor": 3})
    assert changed.status == 200
    assert changed.body["priorityFactor"] == 3.0
    assert changed.body["retryPolicies"] == changed.body["userOwners"] == []
    assert not changed.body["cordoned"]


def test_an_answer_can_be_edited_and_sent_back(olga: Caller) -> None:
    make_queue("nightly")
    read = olga.get("v1/queues/nightly").body
    assert olga.put("v1/queues/nightly", read | {"cordoned": True}).body["cordoned"]


def test_an_update_does_not_rename(olga: Caller) -> None:
    make_queue("nightly")
    refused = olga.put("v1/queues/nightly", {"name": "daily"})
    assert (refused.status, refused.paths) == (400, ["name"])


def test_an_unknown_queue_is_not_found(olga: Caller) -> None:
    for answer in (
        olga.get("v1/queues/none"),
        olga.put("v1/queues/none", {"name": "none"}),
        olga.put("v1/queues/none/retry-policies", {"retryPolicies": []}),
    ):
        assert (answer.status, answer.error["code"]) == (404, "not_found")
        assert "'none'" in answer.error["message"]


def test_every_problem_of_a_queue_is_reported_at_once(olga: Caller) -> None:
    refused = olga.post(
        "v1/queues", {"name": "", "priorityFactor": 0.5, "owner": "alice", "labels": {"a": 1}}
    )
    assert refused.status == 400
    assert set(refused.paths) == {"name", "priorityFactor", "owner", "labels.a"}
    assert Queue.objects.count() == 0


def test_policies_that_do_not_exist_are_named_in_order(olga: Caller) -> None:
    make_policy("oom-grow")
    refused = olga.post("v1/queues", {"name": "n", "retryPolicies": ["b", "oom-grow", "a"]})
    assert refused.status == 400
    assert 'retry policies do not exist: "b", "a"' in refused.error["message"]
    assert refused.paths == ["retryPolicies"]
    assert Queue.objects.count() == 0


def test_policies_are_attached_in_order_each_once(olga: Caller) -> None:
    make_queue("nightly", labels={"kept": "yes"})
    for name in ("a", "b"):
        make_policy(name)
    attached = olga.put("v1/queues/nightly/retry-policies", {"retryPolicies": ["b", "a", "b"]})
    assert (attached.status, attached.body["retryPolicies"]) == (200, ["b", "a"])
    assert attached.body["labels"] == {"kept": "yes"}


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, ["retryPolicies"]),
        ({"retryPolicies": "a"}, ["retryPolicies"]),
        ({"retryPolicies": [1]}, ["retryPolicies[0]"]),
        ({"retryPolicies": [], "name": "x"}, ["name"]),
        ([], [""]),
    ],
)
def test_a_body_of_another_shape_is_refused(olga: Caller, body: object, paths: list[str]) -> None:
    make_queue("nightly")
    refused = olga.put("v1/queues/nightly/retry-policies", body)
    assert (refused.status, refused.paths) == (400, paths)


def test_deleting_a_queue_twice_is_no_error(olga: Caller) -> None:
    make_queue("nightly")
    assert olga.delete("v1/queues/nightly").status == 200
    assert olga.delete("v1/queues/nightly").body == {}
    assert Queue.objects.count() == 0


def test_a_queue_with_jobs_is_not_deleted(olga: Caller) -> None:
    make_job()
    refused = olga.delete("v1/queues/nightly")
    assert (refused.status, refused.error["code"]) == (409, "conflict")


def test_a_queue_counts_its_jobs_by_state(olga: Caller) -> None:
    make_job()
    make_job()
    assert olga.get("v1/queues/nightly").body["jobs"]["queued"] == 2


def test_permission_comes_before_validation() -> None:
    refused = caller("bob", Role.READER).post("v1/queues", '{"broken')
    assert (refused.status, refused.error["code"]) == (403, "not_permitted")
    assert "create_queue" in refused.error["message"]


def test_a_misspelled_parameter_is_refused(olga: Caller) -> None:
    refused = olga.get("v1/queues", {"name": "nightly"})
    assert (refused.status, refused.paths) == (400, ["name"])


def test_listing_takes_the_same_number_of_queries_for_any_number_of_queues(olga: Caller) -> None:
    make_policy("oom-grow")
    make_queue("first", policies=("oom-grow",))
    with CaptureQueriesContext(connection) as few:
        olga.get("v1/queues")
    for number in range(20):
        make_job(make_queue(f"q{number}", policies=("oom-grow",)))
    with CaptureQueriesContext(connection) as many:
        assert len(olga.get("v1/queues").body["queues"]) == 21
    assert len(many) == len(few)


def test_problems_of_a_yaml_queue_have_their_lines(olga: Caller) -> None:
    text = "name: nightly\ncordoned: maybe\npriorityfactor: 0\n"
    refused = olga.call("POST", "v1/queues", body=text, content_type="application/yaml")
    told = [(problem["line"], problem["path"]) for problem in refused.error["problems"]]
    assert told == [(2, "cordoned"), (3, "priorityFactor")]


def test_why_jobs_of_a_queue_wait_is_told_most_frequent_first(olga: Caller) -> None:
    make_executor()
    make_queue("nightly")
    first, _ = (make_job("nightly", gang_id="train", gang_cardinality=3) for _ in range(2))
    limited = make_job("nightly", priority_class="armada-preemptible")
    PoolRound.objects.create(
        pool_id="default",
        gangs={"nightly": {"train": "Gang train waits for 1 of its 3 members."}},
        limited={"nightly": {"armada-preemptible": "The queue holds half of the CPU."}},
        held={"nightly": "The queue starts at most 50 jobs a second."},
    )
    other = make_job("nightly")
    found = olga.get("v1/queues/nightly/waiting")
    assert found.body == {
        "reasons": [
            {"reason": "Gang train waits for 1 of its 3 members.", "jobs": 2, "jobId": first.id},
            {"reason": "The queue starts at most 50 jobs a second.", "jobs": 1, "jobId": other.id},
            {"reason": "The queue holds half of the CPU.", "jobs": 1, "jobId": limited.id},
        ],
        "lookedAt": 4,
        "more": False,
    }
    assert olga.get("v1/queues/weekly/waiting").status == 404
