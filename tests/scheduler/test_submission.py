"""Submitting: a job once however often it is sent, in a number of statements that does not depend on how many."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.documents import DocumentInvalid
from scheduler.actors import Actor, NotPermitted
from scheduler.errors import NotFound
from scheduler.jobfile import JobItem, parse_job_file
from scheduler.models import Event, Job, JobSet, JobSpec
from scheduler.models.clock import database_now
from scheduler.queries.events import events_after
from scheduler.queries.submittable import check_job_file
from scheduler.submission import SubmittedJob, submit_jobs
from tests.factories import MEBI, POD_SPEC, make_executor, make_node, make_queue
from tests.people import ALICE

pytestmark = pytest.mark.django_db


def items(count: int = 1, **fields: Any) -> tuple[JobItem, ...]:
    """Items as a file would bring them; a client id gets the item's number appended."""
    client_id = fields.pop("clientId", "")
    pod_spec = fields.pop("podSpec", POD_SPEC)
    jobs = [
        {"podSpec": pod_spec, "clientId": f"{client_id}{number}" if client_id else "", **fields}
        for number in range(count)
    ]
    return parse_job_file({"queue": "nightly", "jobSetId": "set", "jobs": jobs}).items


def submit(
    submitted: tuple[JobItem, ...], *, actor: Actor = ALICE, job_set: str = "set"
) -> list[SubmittedJob]:
    return submit_jobs(queue="nightly", job_set=job_set, items=submitted, actor=actor)


def test_a_submitted_job_is_queued_with_its_spec_its_resources_and_two_events() -> None:
    make_queue()
    [submitted] = submit(items(priority=3, namespace="team", annotations={"a": "b"}, labels={"c": "d"}))
    job = Job.objects.get()
    assert submitted == SubmittedJob(job_id=job.id, client_id="", created=True)
    assert (job.state, job.owner, job.priority, job.namespace) == ("queued", "alice", 3, "team")
    assert (job.annotations, job.labels) == ({"a": "b"}, {"c": "d"})
    assert job.cpu_request_millicores == 100
    assert job.memory_request_bytes == job.memory_limit_bytes == job.submitted_memory_bytes == 64 * MEBI
    assert JobSpec.objects.get(job=job).pod_spec == POD_SPEC
    events = Event.objects.order_by("number").values_list("number", "kind", "job_id")
    assert list(events) == [(1, "submitted", job.id), (2, "queued", job.id)]
    assert JobSet.objects.get().last_event == 2


def test_the_event_of_a_submission_carries_the_job_as_it_came_but_for_its_pod_spec() -> None:
    make_queue()
    submit(items(priority=3, namespace="team", annotations={"a": "b"}, labels={"c": "d"}, clientId="mine"))
    [told, _] = [event.message for event in events_after("nightly", "set").events]
    job = Job.objects.get()
    created = job.submitted_at.isoformat().replace("+00:00", "Z")
    assert told["submitted"]["created"] == created
    assert told["submitted"]["job"] == {
        "id": job.id, "clientId": "mine0", "jobSetId": "set", "queue": "nightly", "namespace": "team",
        "labels": {"c": "d"}, "annotations": {"a": "b"}, "owner": "alice", "priority": 3,
        "priorityClassName": "armada-default", "created": created,
    }  # fmt: skip


def test_jobs_are_answered_and_go_in_the_order_of_the_file() -> None:
    make_queue()
    submitted = submit(items(30, clientId="c"))
    assert [job.client_id for job in submitted] == [f"c{number}" for number in range(30)]
    in_turn = Job.objects.order_by("priority", "submitted_at", "id").values_list("client_id", flat=True)
    assert list(in_turn) == [f"c{number}" for number in range(30)]


def test_long_annotations_stay_with_the_job_and_out_of_every_stream() -> None:
    make_queue("nightly")
    submit(items(annotations={"a": "b" * 4_095}, labels={"c": "d"}))
    told = Event.objects.get(kind="submitted").payload["job"]
    assert (told["labels"], told["annotations"]) == ({"c": "d"}, {})
    assert Job.objects.get().annotations == {"a": "b" * 4_095}


def test_one_and_five_hundred_jobs_take_the_same_number_of_statements() -> None:
    make_queue()
    make_executor()
    submit(items(1))
    counts = []
    for count in (1, 500):
        with CaptureQueriesContext(connection) as queries:
            submit(items(count, clientId=f"{count}-"))
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 14


def test_the_same_client_id_again_is_answered_with_the_first_job() -> None:
    make_queue()
    [first] = submit(items(clientId="render"))
    again = submit(items(2, clientId="render"), job_set="other")
    assert [(job.job_id == first.job_id, job.created) for job in again] == [(True, False), (False, True)]
    assert Job.objects.count() == 2
    assert Event.objects.filter(job_id=first.job_id).count() == 2


def test_a_client_id_twice_in_one_submission_is_one_job() -> None:
    make_queue()
    one = items(clientId="render")
    submitted = submit((*one, *one))
    assert [job.created for job in submitted] == [True, False]
    assert submitted[0].job_id == submitted[1].job_id
    assert Job.objects.count() == JobSpec.objects.count() == 1


def test_a_client_id_is_a_matter_of_its_queue() -> None:
    make_queue()
    make_queue("weekly")
    submit(items(clientId="render"))
    [other] = submit_jobs(queue="weekly", job_set="set", items=items(clientId="render"), actor=ALICE)
    assert other.created


@pytest.mark.django_db(transaction=True)
def test_submissions_that_race_with_the_same_client_ids_make_each_job_once() -> None:
    make_queue()
    racing, rounds = 6, items(40, clientId="render")
    start = Barrier(racing)

    def race(turn: int) -> list[SubmittedJob]:
        ordered = rounds if turn % 2 else tuple(reversed(rounds))
        try:
            start.wait()
            return submit(ordered)
        finally:
            connection.close()

    with ThreadPoolExecutor(racing) as threads:
        answers = list(threads.map(race, range(racing)))
    ids = [{job.client_id: job.job_id for job in answer} for answer in answers]
    assert all(answer == ids[0] for answer in ids)
    assert sum(job.created for answer in answers for job in answer) == 40
    assert Job.objects.count() == JobSpec.objects.count() == 40
    assert sorted(Event.objects.values_list("number", flat=True)) == list(range(1, 81))


def test_a_cordoned_queue_takes_jobs_it_only_starts_none() -> None:
    make_queue(cordoned=True)
    assert submit(items())[0].created


def with_fields(**fields: Any) -> tuple[JobItem, ...]:
    return items(podSpec={**deepcopy(POD_SPEC), **fields})


def told(job_id: str) -> list[tuple[str, Any]]:
    events = Event.objects.filter(job=job_id).order_by("number")
    return list(events.values_list("kind", "payload__cause"))


def test_a_job_larger_than_every_node_is_accepted_and_rejected_with_the_reason() -> None:
    make_queue()
    make_executor(nodes=2)
    large = {"resources": {"limits": {"memory": "2Gi"}}}
    [fits, too_large] = submit((*items(), *with_fields(containers=[{"name": "main", **large}])))
    assert told(fits.job_id) == [("submitted", None), ("queued", None)]
    assert told(too_large.job_id) == [("submitted", None), ("queued", None), ("failed", "Rejected")]
    job = Job.objects.get(id=too_large.job_id)
    assert (too_large.created, job.state) == (True, "rejected")
    assert job.ended_at == job.submitted_at
    assert "2 have less than 2Gi memory" in job.rejected_because
    failed = Event.objects.get(job=job, kind="failed").payload
    assert failed["reason"] == job.rejected_because
    assert (failed["failureCategory"], failed["failureSubcategory"]) == ("internal", "job-rejected")


def test_a_cordoned_node_counts_and_an_executor_silent_for_too_long_does_not() -> None:
    make_queue()
    make_executor("gone", heartbeat_at=database_now() - timedelta(hours=2))
    small = make_executor("local", nodes=0)
    make_node(small, memory_bytes=32 * MEBI, schedulable=True)
    submit(items())
    make_node(small, schedulable=False)
    submit(items())
    states = Job.objects.order_by("submitted_at").values_list("state", flat=True)
    assert list(states) == ["rejected", "queued"]


def test_a_field_that_no_executor_acts_on_is_named() -> None:
    make_queue()
    make_executor()
    submitted = submit(
        (*with_fields(hostNetwork=True), *with_fields(nodeSelector={"kubernetes.io/hostname": "local-1"}))
    )
    rejected, queued = (Job.objects.get(id=job.job_id) for job in submitted)
    assert rejected.rejected_because == "No executor acts on spec.hostNetwork. Leave it out."
    assert queued.state == "queued"


def test_with_no_executor_heard_of_every_job_waits() -> None:
    make_queue()
    submit(
        with_fields(hostNetwork=True, containers=[{"name": "a", "resources": {"limits": {"memory": "9Ti"}}}])
    )
    assert Job.objects.get().state == "queued"


def test_who_may_submit_is_asked_before_anything_else(bob: Actor) -> None:
    make_queue()
    with pytest.raises(NotPermitted, match="submit_any_jobs"):
        submit(items(), actor=bob)
    with pytest.raises(NotPermitted):
        check_job_file({"queue": "nightly", "nonsense": 1}, actor=bob)
    with pytest.raises(NotPermitted):
        check_job_file(["nonsense"], actor=bob)


def test_owners_and_people_the_queue_names_may_submit(bob: Actor) -> None:
    make_queue(owners=["bob"])
    make_queue("research", owners=[], group_owners=["research"])
    grant = {"subjects": [{"kind": "User", "name": "bob"}], "verbs": ["submit"]}
    make_queue("shared", owners=[], permissions=[grant])
    for queue in ("nightly", "research", "shared"):
        assert submit_jobs(queue=queue, job_set="set", items=items(), actor=bob)[0].created


def test_an_unknown_queue_is_named(alice: Actor) -> None:
    with pytest.raises(NotFound, match="There is no queue 'nightly'"):
        submit(items(), actor=alice)


def test_an_unknown_queue_is_told_with_everything_else_that_is_wrong(alice: Actor, bob: Actor) -> None:
    make_queue()
    make_executor(honours=["spec.containers", "spec.restartPolicy"])
    spec = {**POD_SPEC, "hostNetwork": True, "priorityClassName": "urgent"}
    file = {"queue": "nightlly", "jobSetId": "set", "prio": 1, "jobs": [{"podSpec": spec}]}
    with pytest.raises(NotFound) as told:
        check_job_file(file, actor=alice, honoured=True)
    assert [problem.path for problem in told.value.problems] == [
        "queue",
        "prio",
        "jobs[0].podSpec.priorityClassName",
        "jobs[0].podSpec.hostNetwork",
    ]
    assert told.value.problems[0].message == "There is no queue 'nightlly'. Did you mean nightly?"
    with pytest.raises(NotFound) as told:
        check_job_file(file, actor=bob)
    assert not told.value.problems, "Who may submit nowhere is not told what is wrong."


def test_a_file_is_checked_without_writing_anything(alice: Actor) -> None:
    make_queue()
    file = {"Queue": "nightly", "jobSetId": "set", "jobs": [{"podSpec": deepcopy(POD_SPEC)}]}
    assert len(check_job_file(file, actor=alice).items) == 1
    with pytest.raises(DocumentInvalid):
        check_job_file({**file, "jobs": []}, actor=alice)
    assert not Job.objects.exists()


def test_a_job_set_may_have_any_line_of_text_for_a_name_slashes_included() -> None:
    make_queue()
    rare = "".join(chr(0x20000 + 7919 * number % 40_000) for number in range(256))
    for name in ("a/b/../c?d=e#f", "x" * 1_024, rare):
        file = parse_job_file({"queue": "nightly", "jobSetId": name, "jobs": [{"podSpec": POD_SPEC}]})
        [job] = submit(file.items, job_set=file.job_set)
        assert [event.id for event in events_after("nightly", name).events] == [1, 2]
        assert Job.objects.get(id=job.job_id).job_set.name == name


def test_a_name_of_a_job_set_longer_than_an_index_can_hold_is_a_problem_of_the_file() -> None:
    rare = "".join(chr(0x20000 + 7919 * number % 40_000) for number in range(1_024))
    with pytest.raises(DocumentInvalid) as told:
        parse_job_file({"queue": "nightly", "jobSetId": rare, "jobs": [{"podSpec": POD_SPEC}]})
    assert [problem.path for problem in told.value.problems] == ["jobSetId"]


def test_what_a_job_asks_of_nodes_and_its_gang_are_stored() -> None:
    make_queue()
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    spec = {
        **POD_SPEC,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "priorityClassName": "armada-preemptible",
    }
    gang = {"armadaproject.io/gangId": "train", "armadaproject.io/gangCardinality": "2"}
    submit(items(podSpec=spec, annotations={**gang, "armadaproject.io/gangNodeUniformityLabel": "rack"}))
    job = Job.objects.get()
    assert job.affinity == [[zone]]
    assert job.tolerations == [{"key": "gpu", "operator": "Exists", "value": "", "effect": ""}]
    assert job.priority_class == "armada-preemptible"
    assert (job.gang_id, job.gang_cardinality, job.gang_uniformity_label) == ("train", 2, "rack")


def test_a_job_that_names_no_class_is_of_the_default_one() -> None:
    make_queue()
    submit(items())
    assert Job.objects.get().priority_class == "armada-default"


def test_a_class_that_is_not_configured_is_refused_with_its_path(alice: Actor) -> None:
    make_queue()
    spec = {**POD_SPEC, "priorityClassName": "urgent"}
    file = {"queue": "nightly", "jobSetId": "set", "jobs": [{"podSpec": POD_SPEC}, {"podSpec": spec}]}
    with pytest.raises(DocumentInvalid) as refused:
        check_job_file(file, actor=alice)
    [problem] = refused.value.problems
    assert problem.path == "jobs[1].podSpec.priorityClassName"
    assert "Choose one of armada-default, armada-preemptible" in problem.message
    with pytest.raises(DocumentInvalid):
        submit(parse_job_file(file).items)
    assert not Job.objects.exists()


def test_what_the_scheduler_reads_itself_needs_no_executor_that_acts_on_it() -> None:
    make_queue()
    make_executor()
    exists = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [exists]}}
    submit(
        with_fields(
            affinity={"nodeAffinity": required},
            tolerations=[{"operator": "Exists"}],
            priorityClassName="armada-default",
        )
    )
    assert Job.objects.get().state == "queued"


def test_a_resource_that_nobody_counts_is_rejected_with_the_key() -> None:
    make_queue()
    make_node(make_executor(nodes=0), resources={"tapes": 4})
    container = {"name": "main", "command": ["true"], "resources": {"limits": {"tapes": 1}}}
    submit(with_fields(containers=[container]))
    job = Job.objects.get()
    assert (job.state, job.rejected_because) == (
        "rejected",
        "No node is counted by tapes. Leave it out, or add it to scheduling.supportedResourceTypes.",
    )


def member(
    gang_id: str = "train", *, cardinality: int = 2, label: str = "", **fields: Any
) -> tuple[JobItem, ...]:
    gang = {"armadaproject.io/gangId": gang_id, "armadaproject.io/gangCardinality": str(cardinality)}
    if label:
        gang["armadaproject.io/gangNodeUniformityLabel"] = label
    return items(annotations=gang, **fields)


def test_members_of_a_gang_may_come_one_by_one_until_it_is_complete() -> None:
    make_queue()
    submit(member())
    submit(member())
    with pytest.raises(DocumentInvalid, match="has 2 of its 2 members already"):
        submit(member())
    submit(member("other"))
    assert Job.objects.count() == 3


def test_the_id_of_a_gang_may_be_used_again_when_all_of_it_has_ended() -> None:
    make_queue()
    submit(member() + member())
    Job.objects.update(state="succeeded", ended_at=database_now())
    submit(member())
    assert Job.objects.count() == 3


@pytest.mark.parametrize(
    "other",
    [
        {"cardinality": 3},
        {"label": "rack"},
        {"podSpec": {**POD_SPEC, "priorityClassName": "armada-preemptible"}},
    ],
)
def test_members_agree_with_those_that_were_submitted_before(other: dict[str, Any]) -> None:
    make_queue()
    submit(member())
    with pytest.raises(DocumentInvalid, match="Make them the same"):
        submit(member(**other))
    submit(member(podSpec={**POD_SPEC, "priorityClassName": "armada-default"}))


def test_a_member_sent_again_is_answered_with_the_first_job() -> None:
    make_queue()
    submit(member(clientId="a"))
    submit(member(clientId="b"))
    assert not any(job.created for job in submit(member(clientId="a")))


@pytest.mark.django_db(transaction=True)
def test_members_submitted_at_once_are_never_more_than_the_gang_has() -> None:
    make_queue()
    start = Barrier(4)

    def race(_: int) -> int:
        try:
            start.wait()
            return len(submit(member()))
        except DocumentInvalid:
            return 0
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(race, range(4))) == 2
    assert Job.objects.count() == 2


def test_a_job_of_which_no_single_executor_acts_on_all_fields_is_rejected() -> None:
    make_queue()
    make_executor("a", nodes=1, honours=["spec.containers", "spec.restartPolicy", "spec.hostNetwork"])
    make_executor("b", nodes=1, honours=["spec.containers", "spec.restartPolicy", "spec.hostPID"])
    submit(with_fields(hostNetwork=True))
    submit(with_fields(hostNetwork=True, hostPID=True))
    assert list(Job.objects.order_by("id").values_list("state", "rejected_because")) == [
        ("queued", ""),
        (
            "rejected",
            "None of 2 nodes fits: 1 does not act on spec.hostNetwork; 1 does not act on spec.hostPID.",
        ),
    ]
