"""Bells: a broker that is there, gone or frozen never fails or delays whoever rings."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import kombu.pools
import pytest
from django.db import transaction

from lookout.celery import app
from lookout.embedded import broker
from scheduler import tasks
from scheduler.models import Bell
from scheduler.settling import Settled
from scheduler.states import JobState, RunState
from tests.factories import make_job, make_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A broker of our own that the app talks to; bells may be rung at once."""
    described = broker.broker(tmp_path, log=tmp_path / "broker.log")
    child = broker.start(described)
    before = app.conf.broker_url
    point_the_app_at(described.url)
    yield child
    if child.poll() is None:
        os.kill(child.pid, signal.SIGCONT)
    broker.stop(child)
    point_the_app_at(before)


def point_the_app_at(url: str) -> None:
    app.conf.update(broker_url=url)
    kombu.pools.reset()
    app._after_fork()  # type: ignore[attr-defined]  # forgets its connections, as in a new process
    tasks._quiet_until = 0.0


def waiting_messages() -> int:
    with app.connection_for_read() as connection:
        return int(connection.default_channel.client.llen("decide"))  # type: ignore[attr-defined]


def forget_messages() -> None:
    with app.connection_for_read() as connection:
        connection.default_channel.client.delete("decide")  # type: ignore[attr-defined]


def test_a_bell_rings_after_the_commit_and_not_before(server: subprocess.Popen[bytes]) -> None:
    with transaction.atomic():
        tasks.ring_settle()
        assert waiting_messages() == 0
    assert waiting_messages() == 1


def test_a_bell_of_a_transaction_that_failed_does_not_ring(server: subprocess.Popen[bytes]) -> None:
    with transaction.atomic():
        tasks.ring_settle()
        transaction.set_rollback(True)
    assert waiting_messages() == 0


def test_however_many_ring_one_message_waits(server: subprocess.Popen[bytes]) -> None:
    for _ in range(1_000):
        tasks.ring_settle()
    assert waiting_messages() == 1


def test_a_bell_rung_while_somebody_looks_is_heard(
    server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ring_meanwhile(**_: object) -> Settled:
        tasks.ring_settle()
        return Settled(runs=0, requeued=0, more=False)

    tasks.ring_settle()
    monkeypatch.setattr(tasks, "settle_runs", ring_meanwhile)
    tasks.settle()
    assert waiting_messages() == 2  # the one that is being answered, and another


@pytest.mark.parametrize(("runs", "calls"), [(2, 0), (3, 1)])
def test_more_than_a_batch_calls_for_help_before_the_batch_is_settled(
    server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, runs: int, calls: int
) -> None:
    waited = []

    def look(**_: object) -> Settled:
        waited.append(waiting_messages())
        return Settled(runs=0, requeued=0, more=False)

    for _ in range(runs):
        make_run(make_job(state=JobState.RUNNING), state=RunState.FAILED)
    monkeypatch.setattr(tasks, "BATCH", 2)
    monkeypatch.setattr(tasks, "settle_runs", look)
    tasks.settle()
    assert waited == [calls]


@pytest.mark.parametrize(("storms_elsewhere", "rounds", "calls"), [(False, 0, 1), (True, 1, 0)])
def test_while_it_storms_elsewhere_a_round_is_made_at_once_and_not_called_for(
    server: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    storms_elsewhere: bool,
    rounds: int,
    calls: int,
) -> None:
    settled = Settled(runs=1, requeued=1, more=False, storms_elsewhere=storms_elsewhere)
    made: list[int] = []

    def pools() -> list[str]:
        made.append(1)
        return []

    monkeypatch.setattr(tasks, "settle_runs", lambda **_: settled)
    monkeypatch.setattr(tasks, "pools_with_work", pools)
    tasks.settle()
    assert (len(made), waiting_messages()) == (rounds, calls)


def test_a_bell_whose_message_was_lost_rings_again_after_the_next_sweep(
    server: subprocess.Popen[bytes],
) -> None:
    tasks.ring_settle()
    tasks.ring_rounds()
    forget_messages()
    tasks.ring_settle()
    tasks.ring_rounds()
    assert waiting_messages() == 0
    tasks.sweep()
    tasks.ring_settle()
    tasks.ring_rounds()
    assert waiting_messages() == 2


@pytest.mark.parametrize("trouble", [signal.SIGSTOP, signal.SIGKILL])
def test_ringing_a_frozen_or_dead_broker_takes_less_than_a_second_and_fails_nothing(
    server: subprocess.Popen[bytes], trouble: signal.Signals
) -> None:
    tasks.ring_settle()  # the connection is in the pool, as it is in a process that has been up for a while
    assert waiting_messages() == 1
    os.kill(server.pid, trouble)
    Bell.objects.answer(tasks.settle.name)
    started = time.monotonic()
    tasks.ring_settle()
    assert time.monotonic() - started < 1.0
    started = time.monotonic()
    for _ in range(100):
        tasks.ring_rounds()
    assert time.monotonic() - started < 0.1
