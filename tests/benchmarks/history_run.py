"""The measuring half of `tack bench history`: fills the database it is given, asks every question, prints a table."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402  models are there from here on

from scheduler.rollups import roll_up  # noqa: E402
from tests.benchmarks.history_data import make_history  # noqa: E402
from tests.benchmarks.history_exports import measure_exports  # noqa: E402
from tests.benchmarks.history_ingest import measure_ingest  # noqa: E402
from tests.benchmarks.history_questions import MILLION, QUESTIONS, Question  # noqa: E402

WARM, TIMED = 2, 40
_SETTING_UP = ("SAVEPOINT", "RELEASE", "SELECT current_setting", "SELECT clock_timestamp")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One question."""

    question: Question
    p50: float
    p95: float
    """Milliseconds in SQL, every statement of the read together, from being sent until the rows are here."""
    rows: int
    buffers: int
    """Touched, of 8 KiB, by one asking."""
    aim: float
    """Milliseconds, of `p95`."""

    @property
    def is_met(self) -> bool:
        return self.p95 <= self.aim

    def __str__(self) -> str:
        question = self.question
        return (
            f"{question.id:<4} {question.told:<38} {self.p50:>8.1f} {self.p95:>8.1f} {self.aim:>8.0f}"
            f" {'yes' if self.is_met else 'NO':>4} {self.rows:>7,} {self.buffers:>9,}"
        )


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 when every aim is met, else 1."""
    options = _parse(arguments)
    _timed(f"{options.jobs:,} jobs made", lambda: make_history(options.jobs, say=_say))
    if options.exports:
        _timed("vacuumed", _vacuum)
        measure_exports(_say)
        return 0
    if options.ingest:
        _timed("vacuumed", _vacuum)
        return 0 if measure_ingest(options.jobs, turns=options.turns, say=_say) else 1
    _timed("added up", _add_up)
    _timed("vacuumed", _vacuum)
    if options.jobs > MILLION:
        _say("\nAims are twice those at a million jobs.")
    _say(
        f"\n{'':<4} {'question':<38} {'p50 ms':>8} {'p95 ms':>8} {'aim ms':>8} {'met':>4} {'rows':>7} {'buffers':>9}"
    )
    found = []
    for question in QUESTIONS:
        if not options.only or question.id in options.only:
            values = question.prepared()
            found.append(_measure(question, values, options.jobs))
            _say(str(found[-1]))
            if options.plans:
                _say(_plan(question, values[0]))
    return 0 if all(each.is_met for each in found) else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench history")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--exports", action="store_true")
    parser.add_argument("--ingest", action="store_true")
    parser.add_argument("--turns", type=int, default=1)
    return parser.parse_args(arguments)


def _add_up() -> None:
    while roll_up(seconds=60.0):
        pass


def _vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")


def _timed(what: str, do: Callable[[], object]) -> None:
    started = time.perf_counter()
    do()
    _say(f"{what} in {time.perf_counter() - started:,.0f} s")


def _measure(question: Question, values: Sequence[Any], jobs: int) -> Measured:
    """Ask for the values, which were found before, in turn."""
    asked = [_ask(question, values[turn % len(values)]) for turn in range(WARM + TIMED)]
    times = [sum(seconds for seconds, _, _ in seen) * 1_000 for seen, _ in asked[WARM:]]
    seen, rows = asked[-1]
    return Measured(
        question=question,
        p50=statistics.median(times),
        p95=sorted(times)[int(TIMED * 0.95) - 1],
        rows=rows,
        buffers=sum(_buffers(sql, parameters) for _, sql, parameters in seen),
        aim=question.aim_at(jobs),
    )


def _ask(question: Question, value: Any) -> tuple["_Seen", int]:
    """The statements that were asked, and how many rows came of it."""
    with _statements() as seen:
        found: Any = question.ask(value)
    return seen, len(found) if hasattr(found, "__len__") else 1


type _Seen = list[tuple[float, str, Any]]


@contextmanager
def _statements() -> Iterator[_Seen]:
    """The statements of the block that ask something, with the seconds each took."""
    seen: _Seen = []

    def note(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any) -> Any:
        started = time.perf_counter()
        result = execute(sql, parameters, many, context)
        if not sql.lstrip().startswith(_SETTING_UP):
            seen.append((time.perf_counter() - started, sql, parameters))
        return result

    with connection.execute_wrapper(note):
        yield seen


def _buffers(sql: str, parameters: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", parameters)
        (told,) = cursor.fetchone()
    plan = (json.loads(told) if isinstance(told, str) else told)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _plan(question: Question, value: Any) -> str:
    with _statements() as seen:
        question.ask(value)
    told = []
    for _, sql, parameters in seen:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", parameters)
            told += [line for (line,) in cursor.fetchall()]
    return "\n".join(told)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
