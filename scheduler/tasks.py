"""Celery tasks, each one verb, and the bells that ring them.

A message says only "look at your rows": losing one costs the second until the next sweep, doubling one
costs a look. Of each kind one message waits at most, however many ring.
"""

import logging
import time
from collections.abc import Callable

from celery import Task, shared_task
from django.db import transaction

from scheduler.configured import configuration
from scheduler.expiring import expire_leases
from scheduler.leasing import run_round
from scheduler.models import Bell, Counter, Vigil
from scheduler.queries.fleet import pools_with_work
from scheduler.queries.schedulability import FleetCheck
from scheduler.queries.unsettled import any_unsettled
from scheduler.retention import Removed, remove_some
from scheduler.rollups import roll_up
from scheduler.settling import BATCH, settle_runs

TASK_SECONDS = 0.2
"""After so long a task begins no other batch: sweeps and rounds wait behind it."""
REMOVE_SECONDS = 2.0
"""After so long no more is removed until the next minute: settling and rounds go before."""
QUIET_SECONDS = 2.0
"""After a bell could not be rung, how long none is tried: a caller waits for a dead broker once, not each time."""

log = logging.getLogger(__name__)
_quiet_until = 0.0
_fleet = FleetCheck()
"""What this process knows of the fleet, from one batch to the next."""


@shared_task
def settle() -> None:
    """Settle what awaits it, and ring for rounds where jobs went back to their queues."""
    Bell.objects.answer(settle.name)
    config = configuration()
    until = time.monotonic() + TASK_SECONDS
    if any_unsettled(beyond=BATCH):
        ring_settle()  # whoever is free begins beside this batch, not after it
    while True:
        settled = settle_runs(config=config, fleet=_fleet)
        if settled.requeued and settled.storms_elsewhere:
            place()  # a bell for it would wait for the batches of the storm
        elif settled.requeued:
            ring_rounds()
        if not settled.more:
            return
        ring_settle()  # whoever is free can help, and somebody goes on where this task ends
        if time.monotonic() > until:
            return


@shared_task
def place() -> None:
    """Make a round in every pool that has queued jobs in sight; ring for another where one would find work."""
    Bell.objects.answer(place.name)
    config = configuration()
    rounds = [run_round(pool=pool, config=config) for pool in pools_with_work()]
    if any(made.again for made in rounds):
        ring_rounds()


@shared_task
def sweep() -> None:
    """Once a second: expire leases, settle what a lost bell was about, look for places, forget what was counted long ago."""
    config = configuration()
    # Silence counts from when we were there to hear: not while the database was down or the machine asleep.
    listens_long_enough = Vigil.objects.has_lasted(seconds=config.executor_timeout_seconds)
    Bell.objects.answer(settle.name)
    if (listens_long_enough and expire_leases(config=config)) or any_unsettled():
        settle()
    place()
    Counter.objects.forget(reset_every_seconds=config.metrics_reset_seconds)


@shared_task
def add_up() -> None:
    """Every few seconds: close the hours that are over, and count the jobs that have ended."""
    roll_up()


@shared_task
def remove_old() -> None:
    """Once a minute: remove what is older than it is to be kept, for a second or two.

    It waits for whoever adds up, who often begins at the same moment: passing them over might be for every minute.
    """
    until = time.monotonic() + REMOVE_SECONDS
    removed = Removed(more=True)
    while removed.more and time.monotonic() < until:
        removed += remove_some(config=configuration(), waits=True)
    if removed.counts:
        log.info("Removed since it was too old: %s.", removed)


def ring_settle() -> None:
    """Have ended runs settled soon after the current transaction commits. Never fails or delays the caller."""
    _ring(settle)


def ring_rounds() -> None:
    """Have queued jobs placed soon after the current transaction commits. Never fails or delays the caller."""
    _ring(place)


def _ring(task: "Task[..., None]") -> None:
    transaction.on_commit(_ringer(task), robust=True)


def _ringer(task: "Task[..., None]") -> Callable[[], None]:
    def ring() -> None:
        global _quiet_until
        if time.monotonic() < _quiet_until:
            return
        try:
            if Bell.objects.ring(task.name):
                task.apply_async(retry=False)
        except Exception as error:  # noqa: BLE001 - the caller's work is committed; the sweep will find it
            _quiet_until = time.monotonic() + QUIET_SECONDS
            log.warning("the bell for %s could not be rung: %s", task.name, error)

    return ring
