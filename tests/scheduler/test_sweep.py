"""The sweep, and the silence it does not hold against executors: that of a scheduler which was away itself."""

from datetime import datetime, timedelta

import pytest

from scheduler import tasks
from scheduler.configured import configuration
from scheduler.models import Job, Run, Vigil
from scheduler.models.clock import database_now
from scheduler.states import JobState, RunState
from tests.factories import make_executor, make_run

pytestmark = pytest.mark.django_db(transaction=True)


def timeout() -> timedelta:
    return timedelta(seconds=configuration().executor_timeout_seconds)


def looked(*, since: datetime, last: datetime) -> None:
    Vigil.objects.update_or_create(id=1, defaults={"since": since, "looked_at": last})


def silent_run() -> Run:
    return make_run(executor=make_executor(heartbeat_at=database_now() - 2 * timeout()))


def state_after_a_sweep(run: Run) -> RunState:
    tasks.sweep()
    run.refresh_from_db()
    return RunState(run.state)


def test_leases_expire_when_the_sweep_has_looked_all_the_time() -> None:
    now = database_now()
    looked(since=now - 3 * timeout(), last=now - timedelta(seconds=1))
    run = silent_run()
    assert state_after_a_sweep(run) is RunState.LEASE_EXPIRED
    assert Job.objects.get().state == JobState.FAILED  # settled in the same sweep


def test_after_a_gap_executors_have_their_whole_time_again() -> None:
    now = database_now()
    looked(since=now - 3 * timeout(), last=now - timeout())
    run = silent_run()
    assert state_after_a_sweep(run) is RunState.RUNNING
    looked(since=database_now() - timeout(), last=database_now())
    assert state_after_a_sweep(run) is RunState.LEASE_EXPIRED


def test_a_first_start_and_a_start_after_a_night_expire_nothing() -> None:
    run = silent_run()
    assert state_after_a_sweep(run) is RunState.RUNNING
    looked(since=database_now() - 30 * timeout(), last=database_now() - 20 * timeout())
    assert state_after_a_sweep(run) is RunState.RUNNING


def test_a_sweep_that_was_held_up_a_little_is_no_gap() -> None:
    now = database_now()
    looked(since=now - 3 * timeout(), last=now - timeout() / 20)
    assert state_after_a_sweep(silent_run()) is RunState.LEASE_EXPIRED
