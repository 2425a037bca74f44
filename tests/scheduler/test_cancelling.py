"""Cancelling: at once where nothing runs, in the executor's time where something does, once however often asked."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Actor, NotPermitted
from scheduler.cancelling import Cancelled, cancel_jobs
from scheduler.config import Configuration
from scheduler.errors import Invalid, NotFound
from scheduler.executors.protocol import Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.models import Change, Event, Executor, Job, Run
from scheduler.models.clock import database_now
from scheduler.models.fleet import WORK_CHANNEL
from scheduler.queries.unsettled import any_unsettled
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.states import TERMINAL_JOB_STATES, JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run, more_like

pytestmark = pytest.mark.django_db


def kinds_of(job: Job) -> list[str]:
    return list(Event.objects.filter(job=job).order_by("number").values_list("kind", flat=True))


@pytest.fixture
def woken() -> Iterator[list[str]]:
    """Names of executors that were told to ask for work, once a transaction has committed."""
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {WORK_CHANNEL}")
    names: list[str] = []
    handler = lambda notice: names.append(notice.payload)  # noqa: E731
    connection.connection.add_notify_handler(handler)
    yield names
    connection.connection.remove_notify_handler(handler)
    with connection.cursor() as cursor:
        cursor.execute(f"UNLISTEN {WORK_CHANNEL}")


def test_a_queued_job_is_cancelled_at_once(alice: Actor) -> None:
    job = make_job()
    assert cancel_jobs(job_ids=[job.id], reason="enough", actor=alice) == Cancelled(cancelled=(job.id,))
    job.refresh_from_db()
    assert (job.state, job.cancel_user, job.cancel_reason) == ("cancelled", "alice", "enough")
    assert job.ended_at == job.cancel_requested_at == job.state_changed_at
    assert job.version == 2
    assert kinds_of(job) == ["cancelling", "cancelled"]
    assert Event.objects.filter(job=job, payload={"requestor": "alice"}).count() == 2


@pytest.mark.parametrize("state", [RunState.LEASED, RunState.PENDING, RunState.RUNNING])
def test_a_job_with_a_run_ends_when_its_run_does(alice: Actor, state: RunState) -> None:
    job = make_run(state=state).job
    assert cancel_jobs(job_ids=[job.id], actor=alice) == Cancelled(cancelling=(job.id,))
    job.refresh_from_db()
    assert (job.state, job.ended_at) == ("cancelling", None)
    assert kinds_of(job) == ["cancelling"]


@pytest.mark.django_db(transaction=True)
def test_the_executors_of_the_runs_are_told_after_the_commit(alice: Actor, woken: list[str]) -> None:
    local, remote = make_executor("local"), make_executor("remote")
    jobs = [make_run(make_job(), executor=executor).job for executor in (local, local, remote)]
    queued = make_job()
    cancel_jobs(job_ids=[*(job.id for job in jobs), queued.id], actor=alice)
    Run.objects.count()  # what the server has to say comes with the next answer
    assert sorted(woken) == ["local", "remote"]


def test_a_run_that_has_ended_and_is_not_settled_yet_decides_nothing_any_more(alice: Actor) -> None:
    job = make_run(state=RunState.FAILED).job
    assert cancel_jobs(job_ids=[job.id], actor=alice) == Cancelled(cancelling=(job.id,))
    settle_runs(config=Configuration())
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert kinds_of(job) == ["cancelling", "cancelled"]


def test_a_job_whose_run_was_set_aside_can_still_be_got_rid_of(alice: Actor) -> None:
    job = make_run(state=RunState.FAILED, settle_error="broken").job
    assert cancel_jobs(job_ids=[job.id], actor=alice) == Cancelled(cancelled=(job.id,))


def test_cancelling_twice_keeps_the_first_user_and_reason(alice: Actor, olga: Actor) -> None:
    queued, running = make_job(), make_run().job
    ids = [queued.id, running.id]
    cancel_jobs(job_ids=ids, reason="first", actor=alice)
    assert cancel_jobs(job_ids=ids, reason="second", actor=olga) == Cancelled(unchanged=tuple(ids))
    assert set(Job.objects.values_list("cancel_user", "cancel_reason")) == {("alice", "first")}
    assert Event.objects.count() == 3
    assert Change.objects.count() == 1


@pytest.mark.parametrize("state", TERMINAL_JOB_STATES)
def test_a_job_that_has_ended_stays_as_it_ended(alice: Actor, state: JobState) -> None:
    job = make_job(state=state)
    assert cancel_jobs(job_ids=[job.id], actor=alice) == Cancelled(unchanged=(job.id,))
    job.refresh_from_db()
    assert (job.state, job.cancel_requested_at) == (state, None)
    assert not Change.objects.exists()


def test_the_answer_keeps_the_order_asked_and_each_job_once(alice: Actor) -> None:
    jobs = [make_job().id for _ in range(5)]
    asked = [*reversed(jobs), jobs[0].upper()]
    assert cancel_jobs(job_ids=asked, actor=alice).cancelled == tuple(reversed(jobs))


def test_who_may_cancel_is_the_queues_people_and_operators(alice: Actor, bob: Actor, olga: Actor) -> None:
    make_queue("nightly", owners=["bob"])
    make_queue("weekly", owners=[])
    mine, other = make_job("nightly"), make_job("weekly")
    for ids in ([other.id], [mine.id, other.id]):
        with pytest.raises(NotPermitted, match="cancel_any_jobs"):
            cancel_jobs(job_ids=ids, actor=bob)
    assert not Event.objects.exists()
    assert cancel_jobs(job_ids=[mine.id], actor=bob).cancelled
    with pytest.raises(NotPermitted):
        cancel_jobs(job_ids=[other.id], actor=alice)
    assert cancel_jobs(job_ids=[other.id], actor=olga).cancelled


def test_who_may_not_cancel_is_not_told_what_else_is_wrong(bob: Actor) -> None:
    job = make_job()
    for ids, reason in (([job.id, "job-1"], ""), ([job.id, "0" * 26], ""), ([job.id], "x" * 2_001)):
        with pytest.raises(NotPermitted):
            cancel_jobs(job_ids=ids, reason=reason, actor=bob)


def test_a_lease_that_expires_under_a_job_being_cancelled_ends_the_job_whatever_the_policy_says(
    alice: Actor,
) -> None:
    run = make_run(state=RunState.RUNNING)
    cancel_jobs(job_ids=[run.job_id], actor=alice)
    Executor.objects.update(heartbeat_at=database_now() - timedelta(days=1))
    expire_leases(config=Configuration())
    settle_runs(config=Configuration())
    run.job.refresh_from_db()
    assert run.job.state == "cancelled"
    assert kinds_of(run.job) == ["cancelling", "leaseExpired", "cancelled"]


@pytest.mark.parametrize(
    ("told", "state", "events"),
    [
        (ReportState.SUCCEEDED, "succeeded", ["cancelling", "succeeded"]),
        (ReportState.FAILED, "cancelled", ["cancelling", "cancelled"]),
        (ReportState.LEASE_RETURNED, "cancelled", ["cancelling", "leaseReturned", "cancelled"]),
        (ReportState.CANCELLED, "cancelled", ["cancelling", "cancelled"]),
    ],
)
def test_however_the_run_ends_after_it_was_to_be_cancelled_the_job_ends_with_it(
    alice: Actor, told: ReportState, state: str, events: list[str]
) -> None:
    run = make_run(state=RunState.RUNNING)
    cancel_jobs(job_ids=[run.job_id], actor=alice)
    for _ in range(2):
        record_reports(executor="local", reports=[Report(run_id=str(run.id), state=told)])
        settle_runs(config=Configuration())
    run.job.refresh_from_db()
    assert (run.job.state, kinds_of(run.job)) == (state, events)
    assert not any_unsettled()


def test_all_or_none_are_cancelled(alice: Actor) -> None:
    job = make_job()
    with pytest.raises(NotFound, match="There is no job"):
        cancel_jobs(job_ids=[job.id, "0" * 26], actor=alice)
    with pytest.raises(Invalid) as refused:
        cancel_jobs(job_ids=[job.id, "job-1"], actor=alice)
    assert refused.value.path == "jobIds[1]"
    with pytest.raises(Invalid, match="reason"):
        cancel_jobs(job_ids=[job.id], reason="x" * 2_001, actor=alice)
    with pytest.raises(Invalid, match="At most 10,000"):
        cancel_jobs(job_ids=[job.id] * 10_001, actor=alice)
    job.refresh_from_db()
    assert job.state == "queued"
    assert cancel_jobs(job_ids=[], actor=alice) == Cancelled()


def test_the_change_log_has_one_entry_for_each_queue(alice: Actor) -> None:
    queued, running, other = make_job("nightly"), make_run(make_job("nightly")).job, make_job("weekly")
    cancel_jobs(job_ids=[queued.id, running.id, other.id], reason="enough", actor=alice)
    changes = {change.subject: change for change in Change.objects.all()}
    assert set(changes) == {"nightly", "weekly"}
    nightly = changes["nightly"]
    assert (nightly.actor, nightly.kind, nightly.note) == ("alice", "cancel_jobs", "enough")
    assert nightly.before == {queued.id: "queued", running.id: "running"}
    assert nightly.after == {queued.id: "cancelled", running.id: "cancelling"}


def test_cancelling_one_and_two_hundred_jobs_takes_the_same_number_of_statements(alice: Actor) -> None:
    now = database_now()

    def count(number: int) -> int:
        fields: dict[str, Any] = {"submitted_at": now}
        first = [make_job(**fields), make_run(make_job(**fields)).job]
        ids = [job.id for job in first + [more for job in first for more in more_like(job, number - 1)]]
        with CaptureQueriesContext(connection) as queries:
            cancel_jobs(job_ids=ids, actor=alice)
        return len(queries)

    assert count(1) == count(200)
