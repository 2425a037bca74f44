"""Storm after storm in other queues of a scratch Tack, for as long as something is measured in it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from celery import Celery

from tests.benchmarks import ended_runs
from tests.benchmarks.ended_runs import GROWS, Connection, Storm
from tests.benchmarks.scratch import Scratch
from tests.benchmarks.ten_storms import next_storm

ENVIRONMENT = {"TACK__SCHEDULING__RETRYPOLICY__GLOBALMAXRETRIES": "1000"}
"""Of a Tack whose jobs can fail that often."""


@contextmanager
def storms_elsewhere(tack: Scratch, *, runs: int) -> Iterator[list[float]]:
    """Let so many runs fail at once, again whenever they have been settled; the seconds that each storm took.

    Without runs there is no storm.
    """
    seconds: list[float] = []
    if not runs:
        yield seconds
        return
    storm = Storm(runs=runs, queues=10, job_sets=200, asks=GROWS)
    with psycopg.connect(tack.database_url, autocommit=True) as line:
        _prepare(tack, line, storm)
        ended = threading.Event()
        thread = threading.Thread(target=_storm_on, args=(tack, line, runs, ended, seconds))
        thread.start()
        try:
            yield seconds
        finally:
            ended.set()
            thread.join()


def _prepare(tack: Scratch, line: Connection, storm: Storm) -> None:
    ended_runs.make_template(tack.client)
    ended_runs.keep_template(line)
    ended_runs.make_queues(tack.client, storm, cordoned=False)
    ended_runs.prepare(line, storm)
    with line.transaction():
        ended_runs.pour(line)


def _storm_on(
    tack: Scratch, line: Connection, runs: int, ended: threading.Event, seconds: list[float]
) -> None:
    with Celery(broker=tack.broker_url) as app:

        def ring() -> None:
            app.send_task("scheduler.tasks.settle", queue="decide", expires=60, ignore_result=True)

        ring()
        ended_runs.wait_for_events(line, runs)
        while not ended.is_set():
            seconds.append(next_storm(line, ring))
