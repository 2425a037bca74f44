"""Jobs chosen by queue, job set, states, executor or node: what is meant, in batches, and by whom."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Actor, NotPermitted
from scheduler.cancelling import Cancelled, cancel_selected
from scheduler.errors import Invalid, NotFound
from scheduler.models import Change, Event, Job, Run
from scheduler.queries import chosen
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
