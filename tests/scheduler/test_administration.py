"""Queues: made, replaced, cordoned and deleted; every change in the change log, nothing half done."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from policies.documents import DocumentInvalid
from scheduler.actors import Actor, NotPermitted, QueueVerb
from scheduler.administration import attach_policies, create_queue, delete_queue, update_queue
from scheduler.cordoning import cordon_queue
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound
from scheduler.models import Change, JobSet, Queue, QueuePolicy
from scheduler.publishing import delete_policy
from scheduler.queries.queues import queue_detail
from scheduler.queuefile import Grant, QueueSpec, Subject, parse_queue, queue_document
from scheduler.states import JobState
from tests.factories import make_job, make_policy, make_queue
from tests.people import OLGA

pytestmark = pytest.mark.django_db

GRANT = Grant(subjects=(Subject(kind="Group", name="research"),), verbs=(QueueVerb.SUBMIT, QueueVerb.CANCEL))
FULL = QueueSpec(
    name="nightly",
    priority_factor=2.5,
    owners=("alice",),
    group_owners=("data",),
    permissions=(GRANT,),
    cordoned=True,
    labels={"team": "data"},
    retry_policies=("oom-grow", "other"),
)


def problems(document: object) -> dict[str, str]:
    with pytest.raises(DocumentInvalid) as refused:
        parse_queue(document)
    return {problem.path: problem.message for problem in refused.value.problems}


def test_a_queue_is_made_with_everything_about_it(olga: Actor) -> None:
    make_policy("oom-grow")
    make_policy("other")
    create_queue(spec=FULL, actor=olga)
    assert queue_detail("nightly").spec == FULL
    [change] = Change.objects.all()
    assert (change.actor, change.kind, change.subject, change.before) == (
        "olga",
        "create_queue",
        "nightly",
        None,
    )
    assert parse_queue(change.after) == FULL


def test_an_update_replaces_everything(olga: Actor) -> None:
    make_policy("oom-grow")
    make_policy("other")
    create_queue(spec=FULL, actor=olga)
    assert update_queue(spec=QueueSpec(name="nightly"), actor=olga)
    assert queue_detail("nightly").spec == QueueSpec(name="nightly")
    change = Change.objects.first()
    assert change is not None
    assert parse_queue(change.before) == FULL
    assert parse_queue(change.after) == QueueSpec(name="nightly")


def test_the_same_update_again_changes_nothing(olga: Actor) -> None:
    make_policy("oom-grow")
    make_queue()
    spec = QueueSpec(name="nightly", retry_policies=("oom-grow",))
    assert update_queue(spec=spec, actor=olga)
    assert not update_queue(spec=spec, actor=olga)
    assert not attach_policies(queue="nightly", policies=["oom-grow"], actor=olga)
    assert Change.objects.count() == 1


def test_a_name_in_use_and_a_name_unknown_are_told_apart(olga: Actor) -> None:
    make_queue()
    with pytest.raises(AlreadyExists, match="Queue 'nightly' exists already"):
        create_queue(spec=QueueSpec(name="nightly"), actor=olga)
    with pytest.raises(NotFound, match="There is no queue 'weekly'"):
        update_queue(spec=QueueSpec(name="weekly"), actor=olga)
    assert not delete_queue(name="weekly", actor=olga)
    assert not delete_queue(name="\x00", actor=olga)


def test_policies_are_attached_in_order_and_a_repeated_one_keeps_its_first_place(olga: Actor) -> None:
    for name in ("a", "b", "c"):
        make_policy(name)
    make_queue(policies=("a", "b"))
    assert attach_policies(queue="nightly", policies=["c", "a", "c"], actor=olga)
    assert queue_detail("nightly").retry_policies == ("c", "a")
    change = Change.objects.get()
    assert (change.kind, change.before, change.after) == (
        "attach_retry_policies",
        {"retryPolicies": ["a", "b"]},
        {"retryPolicies": ["c", "a"]},
    )


def test_policies_that_do_not_exist_are_all_named_and_nothing_changes(olga: Actor) -> None:
    make_policy("a")
    make_queue(policies=("a",), priority_factor=2)
    spec = QueueSpec(name="nightly", priority_factor=9, retry_policies=("ghost", "a", "phantom"))
    with pytest.raises(Invalid, match='retry policies do not exist: "ghost", "phantom"') as refused:
        update_queue(spec=spec, actor=olga)
    assert refused.value.names == ("ghost", "phantom")
    assert queue_detail("nightly").spec == QueueSpec(
        name="nightly", priority_factor=2, owners=("alice",), retry_policies=("a",)
    )
    with pytest.raises(Invalid, match='"ghost"'):
        create_queue(spec=QueueSpec(name="weekly", retry_policies=("ghost",)), actor=olga)
    assert not Queue.objects.filter(name="weekly").exists()
    assert not Change.objects.exists()


def test_a_cordon_keeps_everything_else(olga: Actor) -> None:
    make_policy("a")
    make_queue(policies=("a",), labels={"x": "y"})
    assert cordon_queue(queue="nightly", cordoned=True, actor=olga)
    assert not cordon_queue(queue="nightly", cordoned=True, actor=olga)
    spec = queue_detail("nightly").spec
    assert (spec.cordoned, spec.retry_policies, spec.labels) == (True, ("a",), {"x": "y"})


def test_a_queue_with_jobs_is_not_deleted_and_the_sentence_says_what_to_do(olga: Actor) -> None:
    queue = make_queue()
    make_job(queue)
    make_job(queue, state=JobState.SUCCEEDED)
    with pytest.raises(Conflict, match=r"Queue 'nightly' has jobs, and jobs are kept\. Cordon it"):
        delete_queue(name="nightly", actor=olga)


def test_a_deleted_queue_leaves_nothing_behind(olga: Actor) -> None:
    make_policy("a")
    queue = make_queue(policies=("a",))
    JobSet.objects.create(queue=queue, name="empty")
    assert delete_queue(name="nightly", actor=olga)
    assert not delete_queue(name="nightly", actor=olga)
    assert not QueuePolicy.objects.exists()
    assert [change.kind for change in Change.objects.all()] == ["delete_queue"]


def test_who_lacks_the_permission_is_refused_before_anything_is_looked_at(alice: Actor) -> None:
    nonsense = QueueSpec(name="", priority_factor=-1, retry_policies=("ghost",))
    with pytest.raises(NotPermitted, match="create_queue"):
        create_queue(spec=nonsense, actor=alice)
    with pytest.raises(NotPermitted, match="create_queue"):
        update_queue(spec=nonsense, actor=alice)
    with pytest.raises(NotPermitted, match="create_queue"):
        attach_policies(queue="ghost", policies=["ghost"], actor=alice)
    with pytest.raises(NotPermitted, match="delete_queue"):
        delete_queue(name="ghost", actor=alice)


def test_a_specification_built_by_hand_is_checked_as_well(olga: Actor) -> None:
    with pytest.raises(DocumentInvalid):
        create_queue(spec=QueueSpec(name="a b", priority_factor=float("nan")), actor=olga)


def test_a_document_reads_back_to_the_same_queue() -> None:
    assert parse_queue(queue_document(FULL)) == FULL
    envelope = {"apiVersion": "armadaproject.io/v1beta1", "kind": "Queue", "jobs": {"queued": 3}}
    assert parse_queue({**envelope, **queue_document(FULL)}) == FULL
    assert parse_queue({"Name": "q", "priorityfactor": 1}) == QueueSpec(name="q")


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("name", "a/b", "name"),
        ("name", "x" * 64, "name"),
        ("priorityFactor", 0.5, "priorityFactor"),
        ("priorityFactor", "2", "priorityFactor"),
        ("userOwners", "alice", "userOwners"),
        ("userOwners", ["", "a"], "userOwners[0]"),
        ("groupOwners", ["a\nb"], "groupOwners[0]"),
        ("labels", {"a": ""}, "labels.a"),
        ("labels", {"": "a"}, 'labels[""]'),
        ("cordoned", "no", "cordoned"),
        ("retryPolicies", [None], "retryPolicies[0]"),
        ("permissions", [{"subjects": [{"kind": "Robot", "name": "r"}], "verbs": ["submit"]}], "permissions[0].subjects[0].kind"),
        ("permissions", [{"subjects": [{"kind": "User", "name": "r"}], "verbs": ["watch"]}], "permissions[0].verbs[0]"),
        ("resourceLimitsByPriorityClassName", {}, "resourceLimitsByPriorityClassName"),
        ("retry_policies", [], "retry_policies"),
        ("kind", "RetryPolicy", "kind"),
    ],
)  # fmt: skip
def test_a_problem_is_told_with_its_path(field: str, value: Any, path: str) -> None:
    assert set(problems({"name": "q", field: value})) == {path}


@pytest.mark.django_db(transaction=True)
def test_a_policy_is_either_attached_or_deleted_when_both_are_asked_at_once() -> None:
    for turn in range(8):
        name = f"policy-{turn}"
        make_policy(name)
        make_queue(f"queue-{turn}")
        outcomes = _race(
            lambda name=name, turn=turn: attach_policies(queue=f"queue-{turn}", policies=[name], actor=OLGA),
            lambda name=name: delete_policy(name=name, actor=OLGA),
        )
        refused = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert len(refused) == 1
        assert isinstance(refused[0], Invalid | Conflict)


def _race(*verbs: Any) -> list[object]:
    start = Barrier(len(verbs))

    def run(verb: Any) -> object:
        try:
            start.wait()
            return verb()
        except (Invalid, Conflict) as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(verbs)) as threads:
        return list(threads.map(run, verbs))
