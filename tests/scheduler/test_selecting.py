"""Jobs chosen by queue, job set, states, executor or node: what is meant, in batches, and by whom."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Actor, NotPermitted
from scheduler.cancelling import Cancelled, cancel_selected
from scheduler.errors import Invalid, NotFound
from scheduler.executors.protocol import Report, ReportState
from scheduler.models import Change, Event, Job, Run
from scheduler.queries import chosen
from scheduler.reporting import record_reports
from scheduler.selection import OPEN_JOB_STATES, Selection
from scheduler.states import TERMINAL_JOB_STATES, JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run

pytestmark = pytest.mark.django_db


def cancel(actor: Actor, reason: str = "", **named: Any) -> Cancelled:
    return cancel_selected(selection=Selection(**named), reason=reason, actor=actor)


def test_a_whole_queue_is_cancelled_and_no_other(alice: Actor) -> None:
    queued, running = make_job("nightly"), make_run(make_job("nightly")).job
    ended, other = make_job("nightly", state=JobState.SUCCEEDED), make_job("weekly")
    assert cancel(alice, queue="nightly", reason="enough") == Cancelled(
        cancelled=(queued.id,), cancelling=(running.id,)
    )
    assert set(Job.objects.filter(id__in=[ended.id, other.id]).values_list("state", flat=True)) == {
        "succeeded",
        "queued",
    }
    change = Change.objects.get()
    assert (change.subject, change.note) == ("nightly", "enough")
    assert change.before == {"selected": "queue nightly", "queued": 1, "running": 1}
    assert change.after == {"selected": "queue nightly", "cancelled": 1, "cancelling": 1}
    assert cancel(alice, queue="nightly") == Cancelled()


def test_a_job_set_is_cancelled_by_states(alice: Actor) -> None:
    job = make_job(job_set="a")
    runs = [make_run(make_job(job_set="a"), state=state).job for state in (RunState.LEASED, RunState.PENDING)]
    make_job(job_set="b")
    assert cancel(alice, queue="nightly", job_set="a", states=("leased", "pending")).cancelling == tuple(
        sorted(run.id for run in runs)
    )
    assert cancel(alice, queue="nightly", job_set="a").cancelled == (job.id,)
    assert cancel(alice, queue="nightly", job_set="none") == Cancelled()


def test_an_executor_or_a_node_of_it_is_cleared_of_its_jobs(olga: Actor) -> None:
    local, remote = make_executor("local"), make_executor("remote")
    first, second = (make_run(make_job(), executor=local, node=node).job for node in ("local-1", "local-2"))
    elsewhere, queued = make_run(make_job(), executor=remote).job, make_job()
    was_here = make_run(make_job(), executor=local, node="local-1", state=RunState.SUCCEEDED).job
    assert cancel(olga, executor="local", node="local-1").cancelling == (first.id,)
    assert cancel(olga, executor="local").cancelling == (second.id,)
    for job in (elsewhere, queued, was_here):
        job.refresh_from_db()
        assert job.state not in ("cancelled", "cancelling")


def test_priority_classes_narrow_what_is_meant(alice: Actor) -> None:
    make_job(priority_class="armada-default")
    batch = make_job(priority_class="batch")
    assert cancel(alice, queue="nightly", priority_classes=("batch", "other")).cancelled == (batch.id,)


def test_all_that_a_filter_means_is_cancelled_and_the_change_log_says_it_in_words(olga: Actor) -> None:
    jobs = [make_run(make_job(queue), state=RunState.FAILED).job.id for queue in ("a", "b", "a")]
    Job.objects.filter(id__in=jobs[:2]).update(state=JobState.QUEUED)
    Run.objects.update(settled_at=F("ended_at"))
    make_job("a")
    done = cancel(olga, filter="category.any=oom&queue^=a&queue^=b&state!=running")
    assert set(done.cancelled) == set(jobs[:2])
    assert set(Job.objects.exclude(id__in=jobs[:2]).values_list("state", flat=True)) == {"running", "queued"}
    told = "any failure is oom; queue starts with a or b; state is not running"
    assert [change.before for change in Change.objects.all()] == [{"selected": told, "queued": 1}] * 2


def test_a_filter_and_all_else_that_is_said_must_hold(olga: Actor) -> None:
    make_job("nightly", owner="alice"), make_job("weekly", owner="bob")
    mine = make_job("nightly", owner="bob")
    assert cancel(olga, queue="nightly", filter="owner=bob", states=("running",)) == Cancelled()
    assert cancel(olga, queue="nightly", filter="owner=bob").cancelled == (mine.id,)


def test_a_filter_that_means_jobs_of_other_peoples_queues_is_refused_and_nothing_done(alice: Actor) -> None:
    make_queue("hers", owners=["alice"]), make_queue("his", owners=["bob"])
    jobs = [make_job("hers", owner="alice"), make_job("hers", owner="carol"), make_job("his", owner="carol")]
    for said in ("owner=carol", "runs=0", "state=queued", "queue=his"):
        with pytest.raises(NotPermitted, match="Jobs of queue 'his' are meant too"):
            cancel(alice, filter=said)
    assert set(Job.objects.values_list("state", flat=True)) == {"queued"}
    assert cancel(alice, filter="owner=alice").cancelled == (jobs[0].id,)
    assert cancel(alice, filter="owner=carol&queue!=his").cancelled == (jobs[1].id,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("named", [{"executor": "local"}, {"filter": "category.any!=oom"}])
def test_what_was_asked_must_still_hold_once_the_jobs_are_locked(olga: Actor, named: dict[str, str]) -> None:
    run = make_run(make_job(), executor=make_executor("local"))

    def cancel_meanwhile() -> Cancelled:
        try:
            return cancel(olga, **named)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            Job.objects.select_for_update().get()
            waiting = others.submit(cancel_meanwhile)
            while not blocked():
                pass
            failure = Report(run_id=str(run.id), state=ReportState.FAILED, category="oom", message="")
            record_reports(executor="local", reports=[failure])
        assert waiting.result() == Cancelled()
    assert Job.objects.get().state == JobState.RUNNING


def blocked() -> bool:
    """Whether somebody waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_what_a_filter_means_of_jobs_that_are_ending_is_left_alone(
    olga: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "BATCH", 2)
    running = {make_run(make_job()).job.id for _ in range(5)}
    done = [cancel(olga, filter="state=running&state=cancelling&node.any=local-1") for _ in range(3)]
    assert {job for each in done for job in each.cancelling} == running
    assert [each.more for each in done] == [True, True, False]
    assert cancel(olga, filter="state=cancelling") == Cancelled()


def test_the_queues_people_clear_their_queue_and_only_operators_clear_an_executor(
    alice: Actor, bob: Actor, olga: Actor
) -> None:
    make_queue("nightly", owners=["alice"])
    make_executor("local")
    for named in ({"queue": "nightly"}, {"executor": "local"}, {"queue": "none"}, {}):
        with pytest.raises(NotPermitted):
            cancel(bob, **named, reason="x" * 2_001)
    with pytest.raises(NotPermitted):
        cancel(alice, executor="local")
    assert cancel(alice, executor="local", queue="nightly") == Cancelled()
    assert cancel(olga, executor="local") == Cancelled()


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ({}, ""),
        ({"job_set": "a"}, "queue"),
        ({"node": "local-1"}, "executor"),
        ({"states": ("queued",)}, ""),
        ({"queue": "nightly", "states": ("queued", "failed")}, "states[1]"),
        ({"queue": "nightly", "states": ("cancelling",)}, "states[0]"),
        ({"filter": "queue="}, "filter"),
        ({"filter": "&"}, "filter"),
        ({"filter": "nonsense=1"}, "filter"),
        ({"queue": "nightly", "filter": "state=purple"}, "filter"),
        ({"filter": "queue=%00"}, "filter"),
        ({"queue": "nightly", "filter": "category.any"}, "filter"),
        ({"filter": "queue=nightly&category.any~oom"}, "filter"),
        ({"filter": "queue=nightly&node.last="}, "filter"),
        ({"filter": "queue=nightly&priority>="}, "filter"),
    ],
)
def test_what_names_no_jobs_is_refused_and_never_means_all(
    olga: Actor, named: dict[str, Any], path: str
) -> None:
    make_job()
    with pytest.raises(Invalid) as refused:
        cancel(olga, **named)
    assert refused.value.path == path
    assert Job.objects.get().state == "queued"


def test_what_does_not_exist_is_not_found(olga: Actor) -> None:
    make_executor("local")
    for named, kind in (
        ({"queue": "none"}, "queue"),
        ({"executor": "none"}, "executor"),
        ({"executor": "local", "node": "none"}, "node"),
    ):
        with pytest.raises(NotFound) as refused:
            cancel(olga, **named)
        assert refused.value.kind == kind


def test_a_node_that_is_gone_can_be_cleared_of_the_runs_it_had(olga: Actor) -> None:
    run = make_run(executor=make_executor("local"), node="gone")
    assert cancel(olga, executor="local", node="gone").cancelling == (run.job_id,)


def test_many_jobs_are_taken_in_batches_until_none_is_left(
    alice: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "BATCH", 3)
    ids = {make_job().id for _ in range(7)}
    done = [cancel(alice, queue="nightly") for _ in range(4)]
    assert [(len(each.cancelled), each.more) for each in done] == [
        (3, True),
        (3, True),
        (1, False),
        (0, False),
    ]
    assert {job for each in done for job in each.cancelled} == ids
    assert Event.objects.count() == 14


def test_every_state_is_either_open_or_ending() -> None:
    assert set(OPEN_JOB_STATES) == set(JobState) - set(TERMINAL_JOB_STATES) - {JobState.CANCELLING}


def test_one_and_a_hundred_jobs_take_the_same_number_of_statements(alice: Actor) -> None:
    def count(number: int) -> int:
        for _ in range(number):
            make_job(), make_run(make_job())
        with CaptureQueriesContext(connection) as queries:
            cancel(alice, queue="nightly")
        Run.objects.all().delete()
        return len(queries)

    assert count(1) == count(100)
