"""Seats: agents that wait never take the threads that people need."""

import time

import pytest
from django.conf import settings

from lookout.api.executor import endpoints
from lookout.api.executor.seats import LONGEST, SHORTEST, Seats
from scheduler.states import RunState
from tests.api.caller import Caller, agent
from tests.factories import make_executor, make_job, make_run


def test_seats_are_given_until_none_is_left_and_again_when_one_is_given_back() -> None:
    seats = Seats(1)
    with seats.taken() as first, seats.taken() as second:
        assert (first, second) == (True, False)
    with seats.taken() as third:
        assert third


def test_without_seats_nobody_waits() -> None:
    with Seats(0).taken() as seated:
        assert not seated


def test_the_more_agents_stand_the_longer_each_stays_away() -> None:
    seats = Seats(0)
    alone = seats.ask_again_seconds("one")
    crowded = [seats.ask_again_seconds(f"many-{number}") for number in range(400)][-1]
    assert 0.75 * SHORTEST <= alone <= 1.25 * SHORTEST
    assert 0.75 * LONGEST <= crowded <= 1.25 * LONGEST


@pytest.fixture
def local() -> Caller:
    """The agent of executor `local`."""
    return agent("local")


@pytest.mark.django_db
def test_an_agent_without_a_seat_is_answered_at_once_and_told_when_to_ask_again(
    local: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "SEATS", Seats(0))
    asked = {"executor": "local", "runs": [], "waitSeconds": 20}
    started = time.monotonic()
    empty = local.post("executor/v1/work", asked)
    assert time.monotonic() - started < 5
    assert empty.body["leases"] == [] and empty.body["askAgainSeconds"] > 0
    make_run(make_job(), executor=make_executor(), state=RunState.LEASED)
    found = local.post("executor/v1/work", asked)
    assert len(found.body["leases"]) == 1 and found.body["askAgainSeconds"] == 0


def test_by_default_only_some_of_the_threads_are_for_waiting_agents() -> None:
    assert 0 < settings.TACK_LONG_POLLS < 24
