"""How fast runs arrive on top of the past: with the indexes that only questions about the history use, and without."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.db import connection, models

from scheduler.models import Decision, Job, Run
from tests.benchmarks.history_arrivals import LONGEST, Second, arrivals
from tests.benchmarks.processes import cpu_seconds

SECONDS = 20
"""Of a thousand runs each, that are measured."""
MOST_TIMES_SLOWER = 4 / 3
RUNS_A_SECOND = 1_000
MODELS: Sequence[type[models.Model]] = (Job, Run, Decision)
NEEDED = frozenset({"job_queued_order", "job_of_gang", "run_unsettled_of_queue", "run_active_of_executor"})
"""Indexes by which rounds, settling and executors find their work. Those of keys and constraints stay as well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrived:
    """Runs that came and ended, and what that took."""

    runs: int = 0
    seconds: float = 0.0
    """In the database, one verb after the other over one connection."""
    cpu: float = 0.0
    """Of all processes of the database, in seconds."""

    def __add__(self, other: "Arrived") -> "Arrived":
        return Arrived(
            runs=self.runs + other.runs, seconds=self.seconds + other.seconds, cpu=self.cpu + other.cpu
        )

    @property
    def rate(self) -> float:
        """Runs a second."""
        return self.runs / self.seconds

    def __str__(self) -> str:
        per_run = self.cpu / self.runs * 1_000
        return f"{self.runs:>9,} {self.seconds:>9.1f} {self.rate:>9,.0f} {self.cpu:>9.1f} {per_run:>11.2f}"


def measure_ingest(jobs: int, *, turns: int, say: Callable[[str], None]) -> bool:
    """Let runs come after a past of so many jobs, with the indexes first, then without them. Whether the aims are met."""
    indexes = _for_questions()
    say(f"\nindexes for questions: {', '.join(indexes)}")
    say(f"\n{'in this order':<18} {'runs':>9} {'s':>9} {'runs/s':>9} {'CPU s':>9} {'CPU ms/run':>11}")
    found: dict[str, Arrived] = {"with": Arrived(), "without": Arrived()}
    with arrivals(after=jobs, seconds=2 * turns * (LONGEST + SECONDS)) as runs:
        coming = iter(enumerate(runs))
        for turn in range(turns):
            if turn > 0:
                _make(indexes.values())
            for how in found:
                if how == "without":
                    _drop(indexes)
                arrived = _measure(coming)
                found[how] += arrived
                say(f"{how + ' indexes':<18} {arrived}")
    return _judge(found["with"], found["without"], say)


def _for_questions() -> dict[str, str]:
    """Name → definition of the indexes that nothing but questions about the history needs."""
    names = [index.name for model in MODELS for index in model._meta.indexes if index.name not in NEEDED]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexname = ANY(%s) ORDER BY 1", [names]
        )
        return dict(cursor.fetchall())


def _drop(indexes: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {', '.join(indexes)}")


def _make(definitions: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for definition in definitions:
            cursor.execute(definition)


def _measure(coming: Iterator[tuple[int, int]]) -> Arrived:
    """Measures the seconds that come next, from a checkpoint on, but for the first few: until then retries are fewer."""
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
    write, database = Second(), {"database": _pid_of_the_database()}
    for number, _ in islice(coming, LONGEST):
        write(number)
    runs, cpu, started = 0, cpu_seconds(database)["database"], time.perf_counter()
    for number, arriving in islice(coming, SECONDS):
        write(number)
        runs += arriving
    return Arrived(
        runs=runs,
        seconds=time.perf_counter() - started,
        cpu=cpu_seconds(database)["database"] - cpu,
    )


def _pid_of_the_database() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        (folder,) = cursor.fetchone()
    return int((Path(folder) / "postmaster.pid").read_text().split()[0])


def _judge(with_them: Arrived, without: Arrived, say: Callable[[str], None]) -> bool:
    slower = without.rate / with_them.rate
    is_fast, is_near = with_them.rate >= RUNS_A_SECOND, slower <= MOST_TIMES_SLOWER
    say(f"\nwithout / with: {slower:.2f} in runs/s, aim {MOST_TIMES_SLOWER:.2f} at most: {_met(is_near)}")
    cpu = with_them.cpu / with_them.runs / (without.cpu / without.runs)
    say(f"with / without: {cpu:.2f} in CPU of the database")
    say(f"{RUNS_A_SECOND:,} runs/s with the indexes: {_met(is_fast)}")
    return is_fast and is_near


def _met(aim: bool) -> str:
    return "met" if aim else "NOT met"
