"""Reprioritising: another place in the line, told at once, and only to those it changes something for."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Actor, NotPermitted
from scheduler.errors import Invalid, NotFound
from scheduler.models import Change, Event, Job
from scheduler.reprioritising import Reprioritized, reprioritize_jobs, reprioritize_selected
from scheduler.selection import Selection
from scheduler.states import TERMINAL_JOB_STATES, JobState, RunState
from tests.factories import make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


def test_a_queued_job_gets_another_priority_and_its_readers_hear_of_it(alice: Actor) -> None:
    job = make_job(priority=5)
    done = reprioritize_jobs(job_ids=[job.id], priority=1, actor=alice)
    assert done == Reprioritized(reprioritized=(job.id,))
    job.refresh_from_db()
    assert (job.priority, job.version, job.state) == (1, 2, "queued")
    assert list(Event.objects.order_by("number").values_list("kind", "payload")) == [
        ("reprioritizing", {"newPriority": 1, "requestor": "alice"}),
        ("reprioritized", {"newPriority": 1, "requestor": "alice"}),
    ]
    change = Change.objects.get()
    assert (change.kind, change.actor, change.subject) == ("reprioritize_jobs", "alice", "nightly")
    assert (change.before, change.after) == ({job.id: 5}, {job.id: 1})


@pytest.mark.parametrize("state", [RunState.LEASED, RunState.PENDING, RunState.RUNNING])
def test_a_job_with_a_run_keeps_it(alice: Actor, state: RunState) -> None:
    job = make_run(state=state).job
    assert reprioritize_jobs(job_ids=[job.id], priority=7, actor=alice).reprioritized
    job.refresh_from_db()
    assert (job.priority, job.state) == (7, str(state))


@pytest.mark.parametrize("state", [JobState.CANCELLING, *TERMINAL_JOB_STATES])
def test_a_job_that_ends_or_has_ended_stays_as_it_is(alice: Actor, state: JobState) -> None:
    job = make_job(state=state)
    assert reprioritize_jobs(job_ids=[job.id], priority=7, actor=alice) == Reprioritized(unchanged=(job.id,))
    assert not Event.objects.exists() and not Change.objects.exists()


def test_a_priority_it_has_already_changes_nothing(alice: Actor) -> None:
    jobs = [make_job(priority=3), make_job(priority=4)]
    ids = [job.id for job in jobs]
    reprioritize_jobs(job_ids=ids, priority=4, actor=alice)
    assert reprioritize_jobs(job_ids=ids, priority=4, actor=alice) == Reprioritized(unchanged=tuple(ids))
    assert (Event.objects.count(), Change.objects.count()) == (2, 1)


def test_who_may_is_the_queues_people_and_operators_and_is_asked_first(
    alice: Actor, bob: Actor, olga: Actor
) -> None:
    job = make_job()
    for ids, priority in (([job.id], 1), ([job.id, "job-1"], 1), ([job.id], -1)):
        with pytest.raises(NotPermitted, match="reprioritize_any_jobs"):
            reprioritize_jobs(job_ids=ids, priority=priority, actor=bob)
    for priority in (-1, 2**31):
        with pytest.raises(Invalid) as refused:
            reprioritize_jobs(job_ids=[job.id], priority=priority, actor=alice)
        with pytest.raises(Invalid):
            reprioritize_selected(selection=Selection(queue="nightly"), priority=priority, actor=alice)
        assert refused.value.path == "priority"
    with pytest.raises(NotFound):
        reprioritize_jobs(job_ids=["0" * 26], priority=1, actor=alice)
    assert reprioritize_jobs(job_ids=[job.id], priority=2**31 - 1, actor=olga).reprioritized


def test_a_job_set_is_reprioritised_by_its_states(alice: Actor) -> None:
    make_executor()
    queued, other = make_job(job_set="a", priority=9), make_job(job_set="b", priority=9)
    running = make_run(make_job(job_set="a", priority=9)).job
    done = reprioritize_selected(
        selection=Selection(queue="nightly", job_set="a", states=("queued",)), priority=1, actor=alice
    )
    assert done.reprioritized == (queued.id,)
    assert set(Job.objects.filter(id__in=[other.id, running.id]).values_list("priority", flat=True)) == {9}
    assert Change.objects.get().after == {"selected": "queue nightly; job set a; states queued", "1": 1}


def test_one_and_a_hundred_jobs_take_the_same_number_of_statements(alice: Actor) -> None:
    def count(number: int) -> int:
        ids = [make_job().id for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            reprioritize_jobs(job_ids=ids, priority=5, actor=alice)
        return len(queries)

    assert count(1) == count(100)
