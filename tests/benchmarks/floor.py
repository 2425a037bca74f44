"""The floor of a storm: what PostgreSQL alone takes to write what settling wrote.

The same rows with the same columns into the same tables with the same indexes and constraints, in transactions of the
same sizes, by COPY and `UPDATE … FROM`: nobody looks, decides or claims, the values are at hand.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from tests.benchmarks.ended_runs import Connection

JOB_COLUMNS = (
    "state", "state_changed_at", "ended_at", "queued_version", "version", "avoided_nodes",
    "memory_request_bytes", "memory_limit_bytes", "memory_factor", "memory_static_bytes",
)  # fmt: skip
RUN_COLUMNS = ("settled_at", "retryable", "undecided_because")

_JOBS_OF_BATCH = "id IN (SELECT job_id FROM scheduler_run WHERE settled_at = {at})"
_RUNS_OF_BATCH = "settled_at = {at}"
_OF_RUNS = "run_id IN (SELECT id FROM scheduler_run WHERE settled_at = {at})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """What one transaction of settling wrote, as COPY wrote it out."""

    jobs: bytes
    runs: bytes
    decisions: bytes
    events: bytes
    numbers: tuple[list[int], list[int]]
    """Job sets, and the number of the newest event of each."""


def written(line: Connection) -> list[Transaction]:
    """What settling has written, transaction by transaction."""
    moments = line.execute(
        "SELECT settled_at FROM scheduler_run WHERE settled_at IS NOT NULL GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return [_transaction(line, at) for (at,) in moments]


def _transaction(line: Connection, at: datetime) -> Transaction:
    literal = f"'{at.isoformat()}'::timestamptz"

    def out(table: str, columns: str, condition: str) -> bytes:
        query = f"SELECT {columns} FROM scheduler_{table} WHERE {condition.format(at=literal)}"  # noqa: S608
        with line.cursor().copy(f"COPY ({query}) TO STDOUT") as copy:
            return b"".join(bytes(part) for part in copy)

    return Transaction(
        jobs=out("job", ", ".join(("id", *JOB_COLUMNS)), _JOBS_OF_BATCH + " ORDER BY id"),
        runs=out("run", ", ".join(("id", *RUN_COLUMNS)), _RUNS_OF_BATCH),
        decisions=out("decision", "*", _OF_RUNS),
        events=out("event", "*", _OF_RUNS + " ORDER BY job_set_id, number"),
        numbers=_numbers(line, at),
    )


def seconds_to_write(lines: Sequence[Connection], transactions: Sequence[Transaction]) -> float:
    """Write it all again, on so many connections at once as there are lines."""
    for line in lines:
        _prepare(line)
    started = time.perf_counter()
    shares = [transactions[number :: len(lines)] for number in range(len(lines))]
    with ThreadPoolExecutor(len(lines)) as pool:
        list(pool.map(_write_all, lines, shares))
    return time.perf_counter() - started


def _prepare(line: Connection) -> None:
    for table, columns in (("job", JOB_COLUMNS), ("run", RUN_COLUMNS)):
        line.execute(f"DROP TABLE IF EXISTS new_{table}")
        line.execute(
            f"CREATE TEMPORARY TABLE new_{table} ON COMMIT DELETE ROWS AS"  # noqa: S608
            f" SELECT id, {', '.join(columns)} FROM scheduler_{table} LIMIT 0"
        )


def _write_all(line: Connection, transactions: Sequence[Transaction]) -> None:
    for each in transactions:
        with line.transaction():
            _update(line, "job", JOB_COLUMNS, each.jobs)
            _update(line, "run", RUN_COLUMNS, each.runs)
            _copy(line, "scheduler_decision", each.decisions)
            line.execute(_MOVE_NUMBERS, each.numbers)
            _copy(line, "scheduler_event", each.events)


def _update(line: Connection, table: str, columns: Sequence[str], rows: bytes) -> None:
    _copy(line, f"new_{table}", rows)
    assignments = ", ".join(f"{column} = new.{column}" for column in columns)
    line.execute(
        f"UPDATE scheduler_{table} AS old SET {assignments} FROM new_{table} AS new WHERE old.id = new.id"  # noqa: S608
    )


def _copy(line: Connection, table: str, rows: bytes) -> None:
    with line.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        copy.write(rows)


_MOVE_NUMBERS = """
    UPDATE scheduler_jobset SET last_event = new.last FROM unnest(%s::bigint[], %s::bigint[]) AS new(id, last)
     WHERE scheduler_jobset.id = new.id
"""


def _numbers(line: Connection, at: datetime) -> tuple[list[int], list[int]]:
    found = line.execute(
        """SELECT e.job_set_id, max(e.number) FROM scheduler_event e JOIN scheduler_run r ON r.id = e.run_id
            WHERE r.settled_at = %s GROUP BY 1 ORDER BY 1""",
        [at],
    ).fetchall()
    return [job_set for job_set, _ in found], [number for _, number in found]
