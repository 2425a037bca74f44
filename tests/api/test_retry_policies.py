"""Retry policies over REST."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.documents import policy_document, policy_from_object
from scheduler.actors import Role
from scheduler.models import RetryPolicy, RetryPolicyVersion
from tests.api.caller import Answer, Caller, caller
from tests.factories import OOM_GROW, make_executor, make_policy, make_queue

pytestmark = pytest.mark.django_db

AS_YAML = """\
# grows
name: oom-grow
retryLimit: 2
defaultAction: Fail
rules:
  - action: Retry
    onCategory: oom
    mutate: {resources: {memory: {factor: 2}}}
"""


@pytest.fixture
def olga() -> Caller:
    return caller("olga", Role.OPERATOR)


def document(**fields: Any) -> dict[str, Any]:
    return {**OOM_GROW, **fields}


def put(who: Caller, body: object, name: str = "oom-grow", **query: str) -> Answer:
    return who.call("PUT", f"v1/retry-policies/{name}", body=body, query=dict(query))


def test_a_policy_is_published_and_read(olga: Caller) -> None:
    make_executor()
    made = olga.call("POST", "v1/retry-policies", body=document(), query={"note": "first"})
    assert made.status == 201
    assert made.headers["ETag"] == '"1"'
    assert made.body.pop("createdAt").endswith("Z")
    assert made.body == {
        "policy": policy_document(policy_from_object(OOM_GROW)),
        "version": 1,
        "note": "first",
        "author": "olga",
        "queues": [],
        "problems": [],
        "warnings": [],
    }
    make_queue("b", policies=("oom-grow",))
    make_queue("a", policies=("oom-grow",))
    read = olga.get("v1/retry-policies/oom-grow").body
    assert read["queues"] == ["a", "b"]
    assert olga.get("v1/retry-policies").body == {"retryPolicies": [read]}


@pytest.mark.parametrize("media", ["application/yaml", "text/yaml", "application/x-yaml; charset=utf-8"])
def test_a_policy_may_be_written_as_yaml_and_is_kept_as_typed(olga: Caller, media: str) -> None:
    made = olga.call("POST", "v1/retry-policies", body=AS_YAML, content_type=media)
    assert made.status == 201
    assert RetryPolicyVersion.objects.get().text == AS_YAML


def test_other_media_types_are_refused(olga: Caller) -> None:
    refused = olga.call("POST", "v1/retry-policies", body=AS_YAML, content_type="text/csv")
    assert (refused.status, refused.error["code"]) == (415, "unsupported_media_type")


def test_what_is_sent_as_json_must_be_json(olga: Caller) -> None:
    refused = olga.post("v1/retry-policies", AS_YAML)
    assert (refused.status, refused.body["error"]["problems"][0]["line"]) == (400, 1)


def test_problems_of_yaml_have_their_lines(olga: Caller) -> None:
    text = "name: oom-grow\nrules:\n  - action: Retry\n    onCategry: oom\n"
    refused = olga.call("POST", "v1/retry-policies", body=text, content_type="application/yaml")
    assert refused.status == 400
    lines = {problem["path"]: problem.get("line") for problem in refused.error["problems"]}
    assert lines["rules[0].onCategry"] == 4
    assert {"defaultAction", "rules[0].onCategory"} <= set(lines)
    assert RetryPolicy.objects.count() == 0


def test_problems_come_in_the_order_of_their_lines(olga: Caller) -> None:
    text = (
        "retryLimit: x\nname: A\nrules:\n  - action: Retri\n    onCategory: oom\nfoo: 1\ndefaultAction: x\n"
    )
    refused = olga.call("POST", "v1/retry-policies", body=text, content_type="application/yaml")
    assert [problem["line"] for problem in refused.error["problems"]] == [1, 2, 4, 6, 7]


def test_an_older_version_is_no_conflict_when_its_document_is_current_already(olga: Caller) -> None:
    make_policy()
    changed = document(retryLimit=3)
    for _ in range(2):
        put = olga.call("PUT", "v1/retry-policies/oom-grow", body=changed, headers={"If-Match": '"1"'})
        assert (put.status, put.body["version"]) == (200, 2)


def test_keys_given_twice_are_refused(olga: Caller) -> None:
    for body, media in (
        ('{"name": "a", "name": "b", "defaultAction": "Fail"}', "application/json"),
        ("name: a\nname: b\ndefaultAction: Fail\n", "application/yaml"),
    ):
        refused = olga.call("POST", "v1/retry-policies", body=body, content_type=media)
        assert (refused.status, refused.paths) == (400, ["name"])


def test_a_name_in_use_is_refused_and_apply_makes_a_version(olga: Caller) -> None:
    make_policy()
    refused = olga.post("v1/retry-policies", document(retryLimit=3))
    assert (refused.status, refused.error["code"]) == (409, "already_exists")
    applied = olga.call("POST", "v1/retry-policies", body=document(retryLimit=3), query={"apply": "true"})
    assert (applied.status, applied.body["version"]) == (200, 2)
    made = olga.call("POST", "v1/retry-policies", body=document(name="new"), query={"apply": "true"})
    assert (made.status, made.body["version"]) == (201, 1)


def test_an_update_makes_a_version_and_the_same_again_makes_none(olga: Caller) -> None:
    make_policy()
    assert put(olga, document(retryLimit=3), note="more").body["version"] == 2
    assert put(olga, document(retryLimit=3)).body["version"] == 2


def test_an_update_of_an_unknown_name_is_not_found(olga: Caller) -> None:
    assert put(olga, document()).status == 404


def test_a_document_of_another_name_is_refused(olga: Caller) -> None:
    make_policy()
    refused = put(olga, document(name="other"))
    assert (refused.status, refused.paths) == (400, ["name"])


@pytest.mark.parametrize(
    ("tag", "status"), [('"1"', 409), ("1", 409), ('W/"1"', 409), ('"2"', 200), ("*", 200), ("x", 400)]
)
def test_an_edit_of_an_older_version_is_a_conflict(olga: Caller, tag: str, status: int) -> None:
    make_policy()
    make_policy(retryLimit=7)
    answer = olga.call(
        "PUT", "v1/retry-policies/oom-grow", body=document(retryLimit=3), headers={"If-Match": tag}
    )
    assert answer.status == status
    assert RetryPolicy.objects.get().version == (3 if status == 200 else 2)


def test_a_category_no_executor_knows_is_refused_unless_forced(olga: Caller) -> None:
    make_executor("local")
    rules = [{"action": "Retry", "onCategory": "gpu"}]
    refused = olga.post("v1/retry-policies", document(rules=rules))
    assert (refused.status, refused.paths) == (400, ["rules[0].onCategory"])
    forced = olga.call("POST", "v1/retry-policies", body=document(rules=rules), query={"force": "true"})
    assert forced.status == 201


def test_what_executors_say_to_rules_is_told_with_what_is_wrong_with_the_document(olga: Caller) -> None:
    make_executor()
    wrong = AS_YAML.replace("retryLimit", "retry_limit").replace("oom\n", "omo\n") + "  - onCategori: x\n"
    checked = olga.call("POST", "v1/retry-policies/check", body=wrong, content_type="application/yaml")
    told = [(problem["line"], problem["path"]) for problem in checked.body["problems"]]
    assert told[:2] == [(3, "retry_limit"), (7, "rules[0].onCategory")]
    assert "No executor knows the category 'omo'" in checked.body["problems"][1]["message"]
    assert {path for line, path in told[2:]} <= {
        "rules[1].action",
        "rules[1].onCategori",
        "rules[1].onCategory",
    }
    assert len(told) == len(set(told))
    forced = olga.call(
        "POST", "v1/retry-policies", body=document(retry_limit=1, rules=[]), query={"force": "true"}
    )
    assert forced.paths == ["retry_limit"]


def test_an_attached_policy_is_deleted_only_with_detach(olga: Caller) -> None:
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    refused = olga.delete("v1/retry-policies/oom-grow")
    assert (refused.status, refused.error["code"]) == (409, "conflict")
    assert "'nightly'" in refused.error["message"]
    done = olga.call("DELETE", "v1/retry-policies/oom-grow", query={"detach": "true"})
    assert (done.status, done.body) == (200, {})
    assert olga.get("v1/queues/nightly").body["retryPolicies"] == []


def test_deleting_an_unknown_policy_is_no_error(olga: Caller) -> None:
    assert olga.delete("v1/retry-policies/none").status == 200


def test_versions_are_kept_newest_first(olga: Caller) -> None:
    make_policy(note="one")
    make_policy(note="two", retryLimit=9)
    versions = olga.get("v1/retry-policies/oom-grow/versions").body["versions"]
    assert [(each["version"], each["note"]) for each in versions] == [(2, "two"), (1, "one")]
    assert olga.get("v1/retry-policies/oom-grow/versions/1").body == versions[1]
    olga.delete("v1/retry-policies/oom-grow")
    assert len(olga.get("v1/retry-policies/oom-grow/versions").body["versions"]) == 2
    assert olga.get("v1/retry-policies/oom-grow").status == 404


@pytest.mark.parametrize("path", ["none", "none/versions", "none/versions/1", "oom-grow/versions/2"])
def test_unknown_policies_and_versions_are_not_found(olga: Caller, path: str) -> None:
    make_policy()
    assert olga.get(f"v1/retry-policies/{path}").error["code"] == "not_found"


def test_a_check_says_what_is_wrong_and_writes_nothing(olga: Caller) -> None:
    make_executor("local")
    checked = olga.post("v1/retry-policies/check", document(rules=[{"action": "Retry", "onCategory": "gpu"}]))
    assert checked.status == 200
    assert [problem["path"] for problem in checked.body["problems"]] == ["rules[0].onCategory"]
    assert checked.body["rules"] == ["Retries when the category is gpu."]
    broken = olga.call("POST", "v1/retry-policies/check", body="name: [", content_type="text/yaml")
    assert broken.status == 200
    assert broken.body["rules"] == []
    assert broken.body["problems"][0]["line"] >= 1
    assert RetryPolicy.objects.count() == 0


def test_everybody_may_check() -> None:
    checked = caller("bob", Role.READER).post("v1/retry-policies/check", document())
    assert checked.body == {
        "problems": [],
        "warnings": [{"path": "rules[0].onCategory", "message": checked.body["warnings"][0]["message"]}],
        "rules": ["Retries when the category is oom, with twice the memory."],
    }


def test_a_policy_may_be_called_check(olga: Caller) -> None:
    assert olga.post("v1/retry-policies", document(name="check")).status == 201
    assert olga.get("v1/retry-policies/check").body["policy"]["name"] == "check"
    assert olga.delete("v1/retry-policies/check").status == 200
    assert olga.get("v1/retry-policies/check").status == 404


def test_permission_comes_before_validation() -> None:
    alice = caller("alice", Role.SUBMITTER)
    for refused in (
        alice.post("v1/retry-policies", "{"),
        alice.call("POST", "v1/retry-policies", body="{", query={"apply": "true"}),
        put(alice, "{", name="none"),
        alice.call("DELETE", "v1/retry-policies/none", query={"deatch": "true"}),
    ):
        assert (refused.status, refused.error["code"]) == (403, "not_permitted")


def test_a_misspelled_parameter_is_refused(olga: Caller) -> None:
    refused = olga.call("POST", "v1/retry-policies", body=document(), query={"forse": "true"})
    assert (refused.status, refused.paths) == (400, ["forse"])
    assert "force" in refused.error["message"]


def test_a_note_that_is_too_long_is_refused(olga: Caller) -> None:
    refused = olga.call("POST", "v1/retry-policies", body=document(), query={"note": "x" * 2_001})
    assert (refused.status, refused.paths) == (400, ["note"])


def test_a_document_that_is_too_large_is_refused(olga: Caller) -> None:
    text = "name: oom-grow\n#" + "x" * (1024 * 1024)
    refused = olga.call("POST", "v1/retry-policies", body=text, content_type="application/yaml")
    assert (refused.status, refused.error["code"]) == (413, "too_large")


def test_listing_takes_the_same_number_of_queries_for_any_number_of_policies(olga: Caller) -> None:
    make_policy("first")
    with CaptureQueriesContext(connection) as few:
        olga.get("v1/retry-policies")
    for number in range(20):
        make_queue(f"q{number}", policies=(make_policy(f"p{number}").name,))
    with CaptureQueriesContext(connection) as many:
        assert len(olga.get("v1/retry-policies").body["retryPolicies"]) == 21
    assert len(many) == len(few)


def test_what_executors_say_by_now_is_told_of_the_version_in_force(olga: Caller) -> None:
    make_policy()
    make_policy(rules=OOM_GROW["rules"], retryLimit=3)
    make_executor(categories=[{"name": "oom", "disposition": "Retain"}])
    [found] = olga.get("v1/retry-policies").body["retryPolicies"]
    assert found == olga.get("v1/retry-policies/oom-grow").body
    assert [problem["path"] for problem in found["problems"]] == ["rules[0].onCategory"]
    assert "Executor 'local' retains" in found["problems"][0]["message"]
    assert found["warnings"] == []
    assert olga.get("v1/retry-policies/oom-grow/versions/1").body["problems"] == []
