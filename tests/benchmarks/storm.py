"""How fast a storm of failures is settled by the real Celery worker, beside what PostgreSQL alone takes to write it.

N runs end at once. Beside each storm its floor is measured: the same rows written by COPY and UPDATE, with nobody
deciding anything. Every figure is a median (of 100,000 runs there is but one), and settling and floor take turns, so that a busy machine slows both.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import psycopg
from celery import Celery

from lookout.client import TackError
from tests.benchmarks import ended_runs, floor, growth, processes, ten_storms
from tests.benchmarks.ended_runs import AVOIDS, GROWS, Connection, Storm, StormFailed
from tests.benchmarks.scratch import DidNotStart, Scratch, scratch
from tests.benchmarks.storms_elsewhere import ENVIRONMENT

SIZES = (100, 1_000, 10_000, 100_000)
AIM_RATIO = 0.5
AIM_SECONDS, AIM_RUNS = 2.0, 10_000
WORKERS = 2
"""Processes of the Celery worker that `tack up` starts; the floor has as many connections."""
STORMS = (
    Storm(runs=0, queues=1, job_sets=1, asks=GROWS),
    Storm(runs=0, queues=1, job_sets=1, asks=AVOIDS),
    Storm(runs=0, queues=10, job_sets=200, asks=GROWS),
    Storm(runs=0, queues=10, job_sets=200, asks=AVOIDS),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One storm, settled, and its floor written."""

    seconds: float
    floor_seconds: float
    transactions: int
    worker_cpu: float
    database_cpu: float
    floor_cpu: float
    """Of the database."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """A scratch Tack and two connections to its database."""

    tack: Scratch
    line: Connection
    other: Connection

    def ring(self) -> None:
        """Ring the bell that an entry point rings once reports are recorded."""
        with Celery(broker=self.tack.broker_url) as app:
            app.send_task("scheduler.tasks.settle", queue="decide", expires=60, ignore_result=True)

    def cpu(self) -> tuple[float, float]:
        """Seconds of CPU that worker and database have used so far."""
        used = processes.cpu_seconds(processes.services(self.tack.var))
        return used["worker"], used["postgres"]


def main(arguments: Sequence[str]) -> int:
    """Measure and print. The exit code: 0 when the aims are met, 1 when not, 2 when nothing could be measured."""
    options = _parse(arguments)
    try:
        with scratch(ENVIRONMENT) as tack, connect(tack) as line, connect(tack) as other:
            bench = Bench(tack=tack, line=line, other=other)
            ended_runs.make_template(tack.client)
            ended_runs.keep_template(line)
            if options.ten:
                _measure_ten(bench, replace(STORMS[2], runs=AIM_RUNS))
                return 0
            met = [_measure_all(bench, storm, options) for storm in STORMS[: options.storms]]
    except (TackError, StormFailed, DidNotStart) as error:
        sys.stderr.write(f"tack: {error}\n")
        return 2
    return 0 if all(met) else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench storm", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="runs that end at once (%(default)s)"
    )
    parser.add_argument(
        "--times",
        type=int,
        default=5,
        help=f"each figure is the median of so many (%(default)s); beyond {AIM_RUNS:,} runs of one",
    )
    parser.add_argument("--storms", type=int, default=len(STORMS), help="measure only so many kinds of storm")
    parser.add_argument(
        "--ten", action="store_true", help="ten storms on end: show how tables and indexes grow"
    )
    return parser.parse_args(arguments)


def connect(tack: Scratch) -> Connection:
    """A connection to the database of a scratch Tack, for an administrator's SQL."""
    return psycopg.connect(tack.database_url, autocommit=True)


def _measure_all(bench: Bench, kind: Storm, options: argparse.Namespace) -> bool:
    ended_runs.make_queues(bench.tack.client, kind)
    _say(f"\n{kind.label}")
    _say(
        f"{'runs':>9} {'settled':>9} {'runs/s':>8} {'floor':>9} {'runs/s':>8} {'ratio':>6}"
        f" {'commits':>8} {'worker CPU':>11} {'database CPU':>13} {'floor CPU':>10}"
    )
    _measure(bench, replace(kind, runs=200))  # pays for connections and imports
    met = True
    for runs in options.sizes:
        storm = replace(kind, runs=runs)
        times = options.times if runs <= AIM_RUNS else 1  # one takes minutes
        found = _median([_measure(bench, storm) for _ in range(times)])
        met &= _meets_the_aims(storm, found)
        _print(storm, found)
    return met


def _measure(bench: Bench, storm: Storm) -> Measured:
    line = bench.line
    ended_runs.prepare(line, storm)
    with ended_runs.poured(line, bench.other):
        worker, database = bench.cpu()
    started = time.perf_counter()
    bench.ring()
    seconds = ended_runs.wait_for_events(line, storm.runs) - started
    worker_then, database_then = bench.cpu()
    ended_runs.check(line, storm)
    transactions = floor.written(line)
    floor_seconds, floor_cpu = _measure_floor(bench, transactions)
    return Measured(
        seconds=seconds,
        floor_seconds=floor_seconds,
        transactions=len(transactions),
        worker_cpu=worker_then - worker,
        database_cpu=database_then - database,
        floor_cpu=floor_cpu,
    )


def _measure_floor(bench: Bench, transactions: Sequence[floor.Transaction]) -> tuple[float, float]:
    """The same rows again, kept from the worker, which looks for work each second."""
    bench.line.execute("UPDATE bench.run SET settle_error = 'left to the floor'")
    with ended_runs.poured(bench.line, bench.other):
        _, database = bench.cpu()
    with connect(bench.tack) as second:
        seconds = floor.seconds_to_write([bench.line, second][: len(transactions)], transactions)
        return seconds, bench.cpu()[1] - database


def _measure_ten(bench: Bench, storm: Storm) -> None:
    ended_runs.make_queues(bench.tack.client, storm)
    ended_runs.prepare(bench.line, storm)
    with ended_runs.poured(bench.line, bench.other):
        pass
    _say(f"\nTen storms of {storm.runs:,} runs: {storm.label}")
    for number in range(1, 11):
        if number == 1:
            started = time.perf_counter()
            bench.ring()
            seconds = ended_runs.wait_for_events(bench.line, storm.runs) - started
        else:
            seconds = ten_storms.next_storm(bench.line, bench.ring)
        _say(f"storm {number}: settled in {seconds:.2f} s")
        if number in (1, 2, 5, 10):
            _say("\n".join(["", growth.HEADING, *map(str, growth.table_sizes(bench.line)), ""]))


def _median(found: Sequence[Measured]) -> Measured:
    return Measured(
        seconds=statistics.median(each.seconds for each in found),
        floor_seconds=statistics.median(each.floor_seconds for each in found),
        transactions=max(each.transactions for each in found),
        worker_cpu=statistics.median(each.worker_cpu for each in found),
        database_cpu=statistics.median(each.database_cpu for each in found),
        floor_cpu=statistics.median(each.floor_cpu for each in found),
    )


def _meets_the_aims(storm: Storm, found: Measured) -> bool:
    fast = storm.runs != AIM_RUNS or found.seconds <= AIM_SECONDS
    return fast and found.floor_seconds / found.seconds >= AIM_RATIO


def _print(storm: Storm, found: Measured) -> None:
    _say(
        f"{storm.runs:>9,} {found.seconds:>7.3f} s {storm.runs / found.seconds:>8,.0f}"
        f" {found.floor_seconds:>7.3f} s {storm.runs / found.floor_seconds:>8,.0f}"
        f" {found.floor_seconds / found.seconds:>6.2f} {found.transactions:>8}"
        f" {found.worker_cpu:>9.2f} s {found.database_cpu:>11.2f} s {found.floor_cpu:>8.2f} s"
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
