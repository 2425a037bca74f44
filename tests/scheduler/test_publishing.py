"""Policies: immutable numbered versions, no update lost, nothing written that executors cannot do."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from policies.documents import DocumentInvalid, policy_document, policy_from_object, policy_yaml
from policies.policy import Policy
from scheduler.actors import Actor, NotPermitted
from scheduler.config import Configuration
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound
from scheduler.models import Change, RetryPolicyVersion
from scheduler.models.clock import database_now
from scheduler.publishing import (
    EditConflict,
    Published,
    apply_policy,
    create_policy,
    delete_policy,
    update_policy,
)
from scheduler.queries.policies import deployment_check, policy_detail
from scheduler.queries.queues import queue_detail
from tests.factories import OOM_GROW, make_executor, make_policy, make_queue
from tests.people import OLGA

pytestmark = pytest.mark.django_db

CONFIG = Configuration()
AVOID = {"affinity": {"avoidSameNode": True}}


def policy(**fields: Any) -> Policy:
    return policy_from_object({**OOM_GROW, **fields})


def retry(category: str, **fields: Any) -> dict[str, Any]:
    return {"action": "Retry", "onCategory": category, **fields}


def problems(refused: Policy) -> dict[str, str]:
    with pytest.raises(DocumentInvalid) as found:
        create_policy(policy=refused, actor=OLGA, config=CONFIG)
    return {problem.path: problem.message for problem in found.value.problems}


def test_a_new_policy_is_version_one_with_its_text_note_and_author(olga: Actor) -> None:
    published = create_policy(policy=policy(), text="name: oom-grow  # mine", note="first", actor=olga)
    assert published == Published(name="oom-grow", version=1, created=True, changed=True)
    version = RetryPolicyVersion.objects.get()
    assert (version.text, version.note, version.author) == ("name: oom-grow  # mine", "first", "olga")
    assert version.to_policy() == policy()
    change = Change.objects.get()
    assert (change.kind, change.before, change.note) == ("create_retry_policy", None, "first")
    assert change.after == {"version": 1, "document": policy_document(policy())}


def test_every_update_is_a_version_and_the_earlier_ones_stay(olga: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    for limit in (3, 4):
        update_policy(policy=policy(retryLimit=limit), actor=olga)
    detail = policy_detail("oom-grow")
    assert [version.version for version in detail.versions] == [3, 2, 1]
    assert policy_detail("oom-grow", 1).shown.policy == policy()
    assert detail.shown.policy == policy(retryLimit=4)
    change = Change.objects.first()
    assert change is not None
    assert change.before is not None
    assert (change.kind, change.before["version"]) == ("update_retry_policy", 2)


def test_the_same_document_again_makes_no_version(olga: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    again = update_policy(policy=policy(), text="another wording", note="?", actor=olga)
    assert again == Published(name="oom-grow", version=1, created=False, changed=False)
    assert Change.objects.count() == RetryPolicyVersion.objects.count() == 1


def test_what_an_editor_changed_about_comments_is_a_version_too(olga: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    as_shown = policy_yaml(policy())
    assert not update_policy(policy=policy(), text=as_shown, based_on=1, actor=olga).changed
    commented = f"# Asked for by the night shift.\n{as_shown}"
    assert update_policy(policy=policy(), text=commented, based_on=1, actor=olga).version == 2
    typed_in_a_browser = commented.replace("\n", "\r\n")
    assert not update_policy(policy=policy(), text=typed_in_a_browser, based_on=2, actor=olga).changed
    assert policy_detail("oom-grow").shown.row.text == commented
    assert not apply_policy(policy=policy(), text=as_shown, actor=olga).changed


def test_an_update_based_on_an_older_version_is_not_lost_but_told(olga: Actor, alice: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    update_policy(policy=policy(retryLimit=3), based_on=1, actor=olga)
    with pytest.raises(EditConflict, match="at version 2 by now, published by 'olga'") as refused:
        update_policy(policy=policy(retryLimit=5), based_on=1, actor=olga)
    assert refused.value.current_version == 2
    assert policy_detail("oom-grow").shown.policy == policy(retryLimit=3)


def test_the_same_update_sent_twice_is_no_conflict_with_itself(olga: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    outcomes = [update_policy(policy=policy(retryLimit=3), based_on=1, actor=olga).changed for _ in range(2)]
    assert outcomes == [True, False]


@pytest.mark.django_db(transaction=True)
def test_of_edits_that_race_one_is_published_and_the_others_are_told() -> None:
    create_policy(policy=policy(), actor=OLGA)
    start = Barrier(6)

    def race(limit: int) -> bool:
        try:
            start.wait()
            update_policy(policy=policy(retryLimit=limit), based_on=1, actor=OLGA)
        except EditConflict:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(race, range(10, 16))) == 1
    assert policy_detail("oom-grow").shown.version == 2


@pytest.mark.django_db(transaction=True)
def test_of_applications_that_race_for_a_new_name_each_is_published() -> None:
    start = Barrier(6)

    def race(limit: int) -> bool:
        try:
            start.wait()
            return apply_policy(policy=policy(retryLimit=limit), actor=OLGA).created
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        assert sorted(threads.map(race, range(6))) == [False] * 5 + [True]
    assert policy_detail("oom-grow").shown.version == 6


def test_create_update_and_apply_differ_in_what_must_exist(olga: Actor) -> None:
    with pytest.raises(NotFound, match="There is no retry policy 'oom-grow'"):
        update_policy(policy=policy(), actor=olga)
    assert apply_policy(policy=policy(), actor=olga) == Published(
        name="oom-grow", version=1, created=True, changed=True
    )
    with pytest.raises(AlreadyExists, match="Retry policy 'oom-grow' exists already"):
        create_policy(policy=policy(retryLimit=9), actor=olga)
    assert apply_policy(policy=policy(retryLimit=9), actor=olga).version == 2
    assert not apply_policy(policy=policy(retryLimit=9), actor=olga).changed


def test_an_attached_policy_is_not_deleted_and_the_queues_are_named(olga: Actor) -> None:
    make_policy()
    make_queue("weekly", policies=("oom-grow",))
    make_queue("nightly", policies=("oom-grow",))
    with pytest.raises(
        Conflict, match=r"attached to queues 'nightly', 'weekly'\. Detach it first"
    ) as refused:
        delete_policy(name="oom-grow", actor=olga)
    assert refused.value.names == ("nightly", "weekly")


def test_detaching_deletes_in_one_step_and_tells_each_queue(olga: Actor) -> None:
    make_policy()
    make_policy("other")
    make_queue(policies=("oom-grow", "other"))
    deleted = delete_policy(name="oom-grow", detach=True, actor=olga)
    assert (deleted.existed, deleted.detached) == (True, ("nightly",))
    assert queue_detail("nightly").retry_policies == ("other",)
    told = {change.subject: (change.kind, change.after) for change in Change.objects.all()}
    assert told == {
        "nightly": ("attach_retry_policies", {"retryPolicies": ["other"]}),
        "oom-grow": ("delete_retry_policy", None),
    }


def test_deleting_twice_is_fine(olga: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    assert delete_policy(name="oom-grow", actor=olga).existed
    assert not delete_policy(name="oom-grow", actor=olga).existed
    assert not delete_policy(name="\x00", actor=olga).existed


def test_a_policy_made_again_counts_on_from_its_deleted_versions(olga: Actor) -> None:
    create_policy(policy=policy(), actor=olga)
    update_policy(policy=policy(retryLimit=3), actor=olga)
    delete_policy(name="oom-grow", actor=olga)
    with pytest.raises(NotFound):
        policy_detail("oom-grow")
    assert policy_detail("oom-grow", 2).row is None
    assert create_policy(policy=policy(), actor=olga).version == 3
    assert [version.version for version in policy_detail("oom-grow").versions] == [3, 2, 1]


def test_who_lacks_the_permission_is_refused_first(alice: Actor) -> None:
    make_policy("other")
    for verb in (create_policy, update_policy, apply_policy):
        with pytest.raises(NotPermitted, match="retry_policy"):
            verb(policy=policy(name="ghost"), note="x" * 5_000, actor=alice)
    with pytest.raises(NotPermitted, match="update_retry_policy"):
        apply_policy(policy=policy(name="other"), actor=alice)
    with pytest.raises(NotPermitted, match="delete_retry_policy"):
        delete_policy(name="ghost", actor=alice)


def test_notes_and_texts_are_limited(olga: Actor) -> None:
    for note, text in (("x" * 2_001, ""), ("\x00", ""), ("", "x" * 300_000)):
        with pytest.raises(Invalid):
            create_policy(policy=policy(), note=note, text=text, actor=olga)


def test_with_no_executor_heard_of_an_unknown_category_is_a_warning(olga: Actor) -> None:
    unknown = policy(rules=[retry("ghost", mutate=AVOID)])
    check = deployment_check(unknown, config=CONFIG)
    assert not check.problems
    assert [warning.path for warning in check.warnings] == [
        "rules[0].onCategory",
        "rules[0].mutate.affinity.avoidSameNode",
    ]
    assert create_policy(policy=unknown, actor=olga, config=CONFIG).changed


def test_a_category_no_executor_knows_is_refused_unless_forced() -> None:
    make_executor()
    unknown = policy(rules=[retry("oom"), {"action": "Fail", "onCategory": "ghost"}])
    [(path, message)] = problems(unknown).items()
    assert path == "rules[1].onCategory"
    assert "No executor knows the category 'ghost'" in message
    assert "oom, internal" in message
    assert not RetryPolicyVersion.objects.exists()
    assert create_policy(policy=unknown, actor=OLGA, config=CONFIG, force=True).changed


def test_a_retry_of_a_category_that_an_executor_retains_is_refused_with_its_name() -> None:
    make_executor("local")
    make_executor("remote", categories=[{"name": "oom", "disposition": "Retain"}])
    assert "Executor 'remote' retains" in problems(policy())["rules[0].onCategory"]
    kept = policy(rules=[{"action": "Fail", "onCategory": "oom"}])
    assert create_policy(policy=kept, actor=OLGA, config=CONFIG).changed


def test_a_default_retry_reaches_the_categories_that_no_rule_takes() -> None:
    categories = [{"name": name, "disposition": "Retain"} for name in ("flaky", "slow", "user")]
    make_executor(categories=categories)
    rules = [
        {"action": "Fail", "onCategory": "user"},
        {"action": "Fail", "onCategory": "slow", "onSubcategory": "disk"},
    ]
    make_executor("other", categories=[{"name": "flaky", "disposition": "Delete"}])
    with pytest.raises(DocumentInvalid) as refused:
        create_policy(policy=policy(rules=rules, defaultAction="Retry"), actor=OLGA, config=CONFIG)
    flaky, slow, none = refused.value.problems
    assert {problem.path for problem in refused.value.problems} == {"defaultAction"}
    assert "category 'flaky'" in flaky.message
    assert "category 'slow'" in slow.message
    assert "Executor 'other' retains the remains of a run whose failure has no category" in none.message


def test_a_default_retry_is_refused_since_failures_without_a_category_are_retained() -> None:
    make_executor()
    [(path, message)] = problems(policy(defaultAction="Retry")).items()
    assert path == "defaultAction"
    assert "Executor 'local' retains the remains of a run whose failure has no category" in message
    forced = policy(defaultAction="Retry")
    assert create_policy(policy=forced, actor=OLGA, config=CONFIG, force=True).changed


def test_with_no_executor_heard_of_a_default_retry_is_a_warning() -> None:
    check = deployment_check(policy(defaultAction="Retry", rules=[]), config=CONFIG)
    assert (check.problems, [warning.path for warning in check.warnings]) == ((), ["defaultAction"])


def test_where_a_default_category_may_be_the_one_that_fails_a_default_retry_is_a_warning() -> None:
    make_executor(categories=[{"name": "other", "disposition": "Retain"}])
    rules = [{"action": "Fail", "onCategory": "other"}]
    check = deployment_check(policy(rules=rules, defaultAction="Retry"), config=CONFIG)
    assert (check.problems, [warning.path for warning in check.warnings]) == ((), ["defaultAction"])


def test_a_rule_that_retries_the_default_category_is_refused() -> None:
    make_executor(categories=[{"name": "other", "disposition": "Retain"}])
    assert "defaultCategory" in problems(policy(rules=[retry("other")]))["rules[0].onCategory"]


def test_the_category_of_the_system_itself_is_always_known() -> None:
    make_executor()
    internal = policy(rules=[retry("internal", onSubcategory="node-failure", mutate=AVOID)])
    assert create_policy(policy=internal, actor=OLGA, config=CONFIG).changed


def test_avoiding_nodes_by_a_label_nobody_tracks_is_refused() -> None:
    make_executor(tracked_node_labels=["zone"])
    avoiding = policy(rules=[retry("oom", mutate=AVOID)])
    found = problems(avoiding)
    assert set(found) == {"rules[0].mutate.affinity.avoidSameNode"}
    assert "kubernetes.io/hostname" in found["rules[0].mutate.affinity.avoidSameNode"]
    make_executor("other")
    check = deployment_check(avoiding, config=CONFIG)
    assert not check.problems
    assert "Nodes of 'local' cannot be avoided" in check.warnings[0].message


def test_an_executor_silent_for_too_long_has_no_say() -> None:
    long_ago = database_now() - timedelta(seconds=CONFIG.executor_timeout_seconds + 1)
    make_executor(categories=[{"name": "oom", "disposition": "Retain"}], heartbeat_at=long_ago)
    assert create_policy(policy=policy(), actor=OLGA, config=CONFIG).changed


def test_the_current_document_again_is_fine_whatever_executors_say_by_now() -> None:
    create_policy(policy=policy(), actor=OLGA, config=CONFIG)
    make_executor(categories=[{"name": "oom", "disposition": "Retain"}])
    assert not update_policy(policy=policy(), actor=OLGA, config=CONFIG).changed
