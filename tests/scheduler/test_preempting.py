"""Preemption on request: the run is told to give way, and its end is the job's, or has it wait again."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.actors import Actor, NotPermitted
from scheduler.cancelling import cancel_jobs
from scheduler.config import Configuration
from scheduler.errors import Conflict, Invalid, NotFound
from scheduler.executors.protocol import Report, ReportState
from scheduler.models import Change, Event, Job, Run, RunError
from scheduler.preempting import PREEMPTED_ON_REQUEST, Preempting, preempt_jobs, preempt_selected
from scheduler.queries.unsettled import any_unsettled
from scheduler.queries.work import work_for
from scheduler.reporting import record_reports
from scheduler.selection import Selection
from scheduler.settling import settle_runs
from scheduler.states import TERMINAL_JOB_STATES, JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run

pytestmark = pytest.mark.django_db

CONFIG = Configuration()
PREEMPTIBLE = "armada-preemptible"


def preemptible_run(**fields: Any) -> Run:
    return make_run(make_job(priority_class=PREEMPTIBLE, **fields))


def ask(*jobs: Job, actor: Actor, reason: str = "") -> Preempting:
    return preempt_jobs(job_ids=[job.id for job in jobs], reason=reason, actor=actor, config=CONFIG)


def told(run: Run, state: ReportState, **fields: Any) -> None:
    record_reports(executor="local", reports=[Report(run_id=str(run.id), state=state, **fields)])
    settle_runs(config=CONFIG)
    run.refresh_from_db()


def events_of(job: Job) -> list[tuple[str, dict[str, Any]]]:
    return list(Event.objects.filter(job=job).order_by("number").values_list("kind", "payload"))


def kinds_of(job: Job) -> list[str]:
    return [kind for kind, _ in events_of(job)]


@pytest.mark.parametrize("state", [RunState.LEASED, RunState.PENDING, RunState.RUNNING])
def test_a_run_is_asked_to_give_way_and_the_job_keeps_its_state(alice: Actor, state: RunState) -> None:
    job = make_run(make_job(priority_class=PREEMPTIBLE), state=state).job
    assert ask(job, actor=alice) == Preempting(preempting=(job.id,))
    job.refresh_from_db()
    assert (job.state, job.preempt_user, job.preempt_reason) == (str(state), "alice", PREEMPTED_ON_REQUEST)
    assert events_of(job) == [("preempting", {"requestor": "alice", "reason": PREEMPTED_ON_REQUEST})]


def test_the_executor_is_told_to_stop_it_with_its_grace_and_no_lease_is_handed_out(alice: Actor) -> None:
    running = preemptible_run(grace_period_seconds=7)
    leased = make_run(make_job(priority_class=PREEMPTIBLE), state=RunState.LEASED)
    other = preemptible_run()
    ask(running.job, leased.job, actor=alice, reason="room for the report")
    work = work_for(executor="local", known_runs=[str(running.id), str(other.id)])
    assert {(stop.run_id, stop.grace_seconds, stop.reason) for stop in work.stop} == {
        (str(running.id), 7.0, "room for the report"),
        (str(leased.id), 30.0, "room for the report"),
    }
    assert (work.leases, work.missed, work.forget) == ((), (), ())


def test_its_end_makes_run_and_job_preempted_in_the_order_of_events_that_clients_know(alice: Actor) -> None:
    run = preemptible_run()
    ask(run.job, actor=alice)
    for _ in range(2):
        told(run, ReportState.CANCELLED)
    job = Job.objects.get(id=run.job_id)
    assert (run.state, run.undecided_because, job.state) == ("preempted", "preempted", "preempted")
    assert job.ended_at == run.ended_at
    assert not any_unsettled()
    assert events_of(job)[1:] == [
        (
            "preempted",
            {
                "runId": str(run.id),
                "reason": PREEMPTED_ON_REQUEST,
                "preemptingJobId": "",
                "requestor": "alice",
            },
        ),
        (
            "failed",
            {
                "reason": PREEMPTED_ON_REQUEST,
                "failureCategory": "",
                "failureSubcategory": "",
                "retryable": False,
            },
        ),
    ]
    assert RunError.objects.get(run=run).message == PREEMPTED_ON_REQUEST


def test_a_preempted_job_waits_again_with_what_it_had_grown_to_where_that_is_configured(alice: Actor) -> None:
    run = preemptible_run(memory_bytes=128 << 20, memory_factor=2.0)
    ask(run.job, actor=alice)
    report = Report(run_id=str(run.id), state=ReportState.CANCELLED)
    recorded = record_reports(executor="local", reports=[report], requeue_preempted=True)
    job = Job.objects.get(id=run.job_id)
    assert (job.state, job.queued_version, job.memory_factor, job.memory_limit_bytes) == (
        "queued",
        2,
        2.0,
        128 << 20,
    )
    assert (job.ended_at, recorded.any_room) == (None, True)
    assert [(kind, payload.get("retryable")) for kind, payload in events_of(job)] == [
        ("preempting", None),
        ("preempted", None),
        ("failed", True),
    ]


def test_a_request_is_about_the_run_there_was_and_no_later_one(alice: Actor) -> None:
    run = preemptible_run()
    ask(run.job, actor=alice)
    record_reports(
        executor="local",
        reports=[Report(run_id=str(run.id), state=ReportState.CANCELLED)],
        requeue_preempted=True,
    )
    later = make_run(Job.objects.get(id=run.job_id))
    assert work_for(executor="local", known_runs=[str(later.id)]).is_empty
    told(later, ReportState.CANCELLED, message="somebody at the machine")
    assert later.state == RunState.LEASE_RETURNED


@pytest.mark.parametrize(
    ("state", "job_state", "kinds"),
    [
        (ReportState.SUCCEEDED, "succeeded", ["preempting", "succeeded"]),
        (ReportState.FAILED, "failed", ["preempting", "failed"]),
        (ReportState.LEASE_RETURNED, "queued", ["preempting", "leaseReturned"]),
    ],
)
def test_a_run_that_ends_by_itself_first_ends_as_it_did(
    alice: Actor, state: ReportState, job_state: str, kinds: list[str]
) -> None:
    run = preemptible_run()
    ask(run.job, actor=alice)
    told(run, state)
    job = Job.objects.get(id=run.job_id)
    assert (job.state, kinds_of(job)) == (job_state, kinds)


def test_a_job_that_is_cancelled_while_it_gives_way_ends_cancelled(alice: Actor) -> None:
    run = preemptible_run()
    ask(run.job, actor=alice)
    cancel_jobs(job_ids=[run.job_id], actor=alice)
    assert ask(run.job, actor=alice).unchanged
    told(run, ReportState.CANCELLED)
    job = Job.objects.get(id=run.job_id)
    assert (job.state, kinds_of(job)) == ("cancelled", ["preempting", "cancelling", "cancelled"])


def test_asking_twice_keeps_the_first_user_and_reason(alice: Actor, olga: Actor) -> None:
    run = preemptible_run()
    ask(run.job, actor=alice, reason="first")
    assert ask(run.job, actor=olga, reason="second") == Preempting(unchanged=(run.job_id,))
    job = Job.objects.get(id=run.job_id)
    assert (job.preempt_user, job.preempt_reason) == ("alice", "first")
    assert (Event.objects.count(), Change.objects.count()) == (1, 1)


@pytest.mark.parametrize("state", [JobState.QUEUED, *TERMINAL_JOB_STATES])
def test_a_job_without_a_run_stays_as_it_is_of_whatever_class(alice: Actor, state: JobState) -> None:
    job = make_job(state=state)
    assert ask(job, actor=alice) == Preempting(unchanged=(job.id,))
    assert not Event.objects.exists() and not Change.objects.exists()


def test_a_class_that_is_not_preemptible_is_refused_and_all_or_none_are_asked(alice: Actor) -> None:
    gives_way, stays, of_no_class = preemptible_run().job, make_run().job, make_job(priority_class="gone")
    make_run(of_no_class)
    with pytest.raises(Conflict, match="'armada-default', which is not preemptible"):
        ask(gives_way, stays, actor=alice)
    with pytest.raises(Conflict, match="'gone', which is not preemptible"):
        ask(of_no_class, actor=alice)
    assert not Event.objects.exists()


def test_jobs_without_a_class_are_of_the_default_class(alice: Actor) -> None:
    config = Configuration(default_priority_class_name=PREEMPTIBLE)
    job = make_run().job
    assert preempt_jobs(job_ids=[job.id], actor=alice, config=config).preempting


def test_who_may_preempt_is_the_queues_people_and_operators(alice: Actor, bob: Actor, olga: Actor) -> None:
    job = preemptible_run().job
    for ids, reason in (([job.id], ""), ([job.id, "job-1"], ""), ([job.id], "x" * 2_001)):
        with pytest.raises(NotPermitted, match="preempt_any_jobs"):
            preempt_jobs(job_ids=ids, reason=reason, actor=bob, config=CONFIG)
    with pytest.raises(Invalid, match="reason"):
        ask(job, actor=alice, reason="x" * 2_001)
    with pytest.raises(NotFound):
        preempt_jobs(job_ids=["0" * 26], actor=alice, config=CONFIG)
    assert ask(job, actor=olga).preempting


def test_a_selection_takes_what_gives_way_and_leaves_the_rest(olga: Actor) -> None:
    make_executor("local"), make_executor("remote")
    here, elsewhere = preemptible_run(job_set="a"), preemptible_run(job_set="b")
    stays, waits = make_run().job, make_job(priority_class=PREEMPTIBLE)

    def select(**named: Any) -> tuple[str, ...]:
        return preempt_selected(selection=Selection(**named), actor=olga, config=CONFIG).preempting

    assert select(queue="nightly", job_set="a") == (here.job_id,)
    assert select(queue="nightly") == (elsewhere.job_id,)
    assert select(queue="nightly") == ()
    assert kinds_of(stays) == kinds_of(waits) == []
    assert [change.after for change in Change.objects.order_by("id")] == [
        {"selected": "queue nightly; job set a", "preempting": 1},
        {"selected": "queue nightly", "preempting": 1},
    ]


def test_an_executor_or_one_of_its_nodes_can_be_emptied_by_operators(alice: Actor, olga: Actor) -> None:
    make_queue("nightly", owners=["alice"])
    remote = make_executor("remote")
    on = [
        make_run(make_job(priority_class=PREEMPTIBLE), executor=remote, node=f"remote-{n}") for n in (1, 2, 2)
    ]
    make_run(make_job(priority_class=PREEMPTIBLE), executor=make_executor("local"))
    with pytest.raises(NotPermitted):
        preempt_selected(selection=Selection(executor="remote"), actor=alice, config=CONFIG)
    node = preempt_selected(
        selection=Selection(executor="remote", node="remote-1"), actor=olga, config=CONFIG
    )
    assert node.preempting == (on[0].job_id,)
    mine = Selection(executor="remote", queue="nightly")
    assert len(preempt_selected(selection=mine, actor=alice, config=CONFIG).preempting) == 2


def test_preempting_one_and_a_hundred_jobs_takes_the_same_number_of_statements(alice: Actor) -> None:
    def count(number: int) -> int:
        jobs = [preemptible_run().job for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            ask(*jobs, actor=alice)
        return len(queries)

    assert count(1) == count(100)
