"""What an executor is told to do when it asks for work."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.config import Configuration
from scheduler.executors.protocol import Stop, Work
from scheduler.leasing import run_round
from scheduler.models import Job, Run
from scheduler.models.clock import database_now
from scheduler.queries.work import work_for
from scheduler.states import JobState, RunState
from tests.factories import MEBI, POD_SPEC, make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


def work(*known: str) -> Work:
    return work_for(executor="local", known_runs=known)


def test_a_lease_says_everything_the_executor_needs() -> None:
    executor = make_executor("local")
    job = make_job("nightly", job_set="evening", owner="alice", namespace="data", labels={"team": "a"})
    run = make_run(job, executor=executor, state=RunState.LEASED)

    (lease,) = work().leases

    assert (lease.run_id, lease.job_id, lease.number, lease.node) == (str(run.id), job.id, 1, "local-1")
    assert (lease.queue, lease.job_set_id, lease.owner, lease.namespace) == (
        "nightly",
        "evening",
        "alice",
        "data",
    )
    assert (lease.pod_name, lease.memory_bytes, lease.labels) == (
        f"armada-{job.id}-0",
        64 * MEBI,
        {"team": "a"},
    )
    assert lease.pod_spec["containers"][0]["command"] == ["/bin/sh", "-c", "true"]


def test_growth_reaches_the_pod_spec_and_the_limit_of_the_lease() -> None:
    executor = make_executor("local")
    job = make_job(pod_spec=POD_SPEC, memory_bytes=128 * MEBI, memory_factor=2.0)
    make_run(job, executor=executor, state=RunState.LEASED)

    (lease,) = work().leases

    resources = lease.pod_spec["containers"][0]["resources"]
    assert lease.memory_bytes == 128 * MEBI
    assert (resources["requests"]["memory"], resources["limits"]["memory"]) == ("128Mi", "128Mi")
    assert job.spec.pod_spec["containers"][0]["resources"]["limits"]["memory"] == "64Mi"


def test_asking_again_hands_out_the_same_leases_until_they_are_known() -> None:
    run = make_run(executor=make_executor("local"), state=RunState.LEASED)
    assert work() == work()
    assert [lease.run_id for lease in work().leases] == [str(run.id)]
    assert work(str(run.id)).is_empty


def test_runs_of_other_executors_are_nobody_elses_business() -> None:
    make_executor("local")
    make_run(executor=make_executor("other"), state=RunState.LEASED)
    assert work().is_empty


def test_a_cancelled_job_is_stopped_and_not_leased_again() -> None:
    executor = make_executor("local")
    wanted: dict[str, Any] = {
        "cancel_requested_at": database_now(),
        "cancel_user": "bob",
        "grace_period_seconds": 7,
    }
    known = make_run(make_job(**wanted), executor=executor)
    unheard_of = make_run(
        make_job(**wanted, cancel_reason="not needed"), executor=executor, state=RunState.LEASED
    )
    Job.objects.update(state=JobState.CANCELLING)

    found = work(str(known.id))

    assert found.leases == ()
    assert {stop.run_id: stop for stop in found.stop} == {
        str(known.id): Stop(run_id=str(known.id), grace_seconds=7.0, reason="Cancelled by bob"),
        str(unheard_of.id): Stop(run_id=str(unheard_of.id), grace_seconds=7.0, reason="not needed"),
    }


def test_a_stop_that_the_executor_knows_of_is_not_told_again() -> None:
    executor = make_executor("local")
    runs = [
        str(make_run(make_job(cancel_requested_at=database_now(), cancel_user="bob"), executor=executor).id)
        for _ in range(2)
    ]
    told = work_for(executor="local", known_runs=runs, stopping=[runs[0].upper(), "no run id at all"])
    assert [stop.run_id for stop in told.stop] == [runs[1]]
    assert work_for(executor="local", known_runs=runs, stopping=runs).is_empty


def test_what_has_ended_here_or_was_never_this_executors_can_be_forgotten() -> None:
    executor = make_executor("local")
    going = make_run(make_job(), executor=executor)
    expired = make_run(make_job(), executor=executor, state=RunState.LEASE_EXPIRED)
    foreign = make_run(make_job(), executor=make_executor("other"))
    unknown = str(uuid.uuid4())

    found = work(str(going.id), str(expired.id), str(foreign.id), unknown, "no run id at all")

    assert set(found.forget) == {str(expired.id), str(foreign.id), unknown, "no run id at all"}


def test_what_it_took_up_and_knows_nothing_of_is_missed() -> None:
    executor = make_executor("local")
    running = make_run(make_job(), executor=executor)
    pending = make_run(make_job(), executor=executor, state=RunState.PENDING)
    make_run(make_job(), executor=executor, state=RunState.SUCCEEDED)
    cancelled = make_run(make_job(cancel_requested_at=database_now(), cancel_user="bob"), executor=executor)

    assert set(work().missed) == {str(running.id), str(pending.id)}
    assert work(str(running.id), str(pending.id).upper(), str(cancelled.id)).missed == ()


@pytest.mark.django_db(transaction=True)
def test_a_round_makes_the_leases_an_executor_is_handed() -> None:
    make_executor("local")
    make_job(memory_bytes=128 * MEBI, memory_factor=2.0, pod_spec=POD_SPEC)
    run_round(pool="default", config=Configuration())
    (lease,) = work().leases
    assert lease.run_id == str(Run.objects.get().id)
    assert lease.pod_spec["containers"][0]["resources"]["limits"]["memory"] == "128Mi"


def test_an_answer_takes_as_many_queries_for_fifty_runs_as_for_one() -> None:
    executor = make_executor("local")

    def count(runs: int) -> int:
        known = []
        for _ in range(runs):
            make_run(make_job(), executor=executor, state=RunState.LEASED)
            known.append(str(make_run(make_job(), executor=executor).id))
        with CaptureQueriesContext(connection) as queries:
            assert len(work(*known).leases) == Run.objects.filter(state=RunState.LEASED).count()
        return len(queries)

    assert count(1) == count(50)
