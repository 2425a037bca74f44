"""The rows of a round: nodes that are empty or full, and jobs of twenty sizes that wait in fifty queues.

Each row is a copy of one that Tack wrote itself, about a job that ran; only ids, times, sizes and places are its own.
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from lookout.client import Client
from tests.benchmarks.copied_rows import Changes, selected
from tests.benchmarks.ended_runs import Connection, StormFailed
from tests.benchmarks.job_files import SUCCEEDS, job_file

TEMPLATE = "round-template"
EXECUTOR = "bench"
QUEUES, SIZES = 50, 20
RUNS_ON_A_NODE = 10
_CORE, _GIBI = 1_000, 1 << 30

_KEEP = """
    CREATE SCHEMA template;
    CREATE TABLE template.job AS SELECT * FROM scheduler_job WHERE queue_id = '{queue}';
    CREATE TABLE template.run AS SELECT * FROM scheduler_run WHERE job_id IN (SELECT id FROM template.job);
    CREATE TABLE template.executor AS SELECT * FROM scheduler_executor WHERE name = 'local';
    CREATE TABLE template.node AS SELECT * FROM scheduler_node WHERE executor_id = 'local' LIMIT 1;
"""
_EMPTY = """
    TRUNCATE scheduler_job CASCADE;
    DELETE FROM scheduler_poolround;
    UPDATE scheduler_jobset SET last_event = 0 WHERE last_event > 0;
    DELETE FROM scheduler_node WHERE executor_id = '{executor}';
    DELETE FROM scheduler_executor WHERE name = '{executor}';
    UPDATE scheduler_node SET schedulable = false;
"""
_EXECUTOR: Changes = {"name": "%(executor)s", "heartbeat_at": "now() + interval '1 day'"}
_NODE: Changes = {
    "id": "nextval(pg_get_serial_sequence('scheduler_node', 'id'))", "executor_id": "%(executor)s",
    "name": "'bench-' || n", "schedulable": "true", "notes": "'{}'::text[]",
    "cpu_millicores": "%(cpu)s", "memory_bytes": "%(memory)s",
    "labels": "jsonb_build_object('kubernetes.io/hostname', 'bench-' || n)",
}  # fmt: skip
_NODES = "generate_series(1, %(nodes)s) AS n, template.node AS t"
_JOB_SETS = """
    INSERT INTO scheduler_jobset (queue_id, name, last_event)
    SELECT 'bench-' || n, 'bench', 0 FROM generate_series(0, %(queues)s - 1) AS n ON CONFLICT DO NOTHING
"""
_JOB: Changes = {
    "id": "(lpad(to_hex(%(ms)s + n / 10), 12, '0') || substr(md5(random()::text), 1, 20))::uuid",
    "queue_id": "s.queue_id", "job_set_id": "s.id", "client_id": "NULL", "state": "%(state)s",
    "submitted_at": "now()", "ended_at": "NULL", "run_count": "%(runs)s",
    "cpu_request_millicores": "%(cpu)s::bigint * (1 + n / %(queues)s %% %(sizes)s %% 4)",
    "memory_request_bytes": "%(memory)s::bigint * (1 + n / %(queues)s %% %(sizes)s / 4)",
    "memory_limit_bytes": "%(memory)s::bigint * (1 + n / %(queues)s %% %(sizes)s / 4)",
}  # fmt: skip
_JOBS = """generate_series(0, %(count)s - 1) AS n
      JOIN scheduler_jobset AS s ON s.queue_id = 'bench-' || n %% %(queues)s, template.job AS t"""
_RUN: Changes = {
    "id": "gen_random_uuid()", "job_id": "j.id", "queue_id": "j.queue_id", "executor_id": "%(executor)s",
    "node": "'bench-' || 1 + j.n / %(on_a_node)s", "state": "'running'", "ended_at": "NULL",
    "recorded_at": "NULL", "settled_at": "NULL", "cpu_request_millicores": "j.cpu_request_millicores",
    "memory_request_bytes": "j.memory_request_bytes", "memory_limit_bytes": "j.memory_limit_bytes",
}  # fmt: skip
_RUNS = """(SELECT *, row_number() OVER (ORDER BY id) - 1 AS n FROM scheduler_job WHERE state = 'running') AS j,
           template.run AS t"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """How much waits for how much."""

    jobs: int
    nodes: int
    full: bool = False
    """The nodes are full of runs that do not give way."""


def make_template(client: Client, line: Connection) -> None:
    """Let a job run, keep the rows it left, and make the queues."""
    client.create_queue({"name": TEMPLATE})
    (submitted,) = client.submit_jobs(job_file(queue=TEMPLATE, job_set=TEMPLATE, script=SUCCEEDS))
    deadline = time.monotonic() + 60
    while not client.job(submitted.job_id).has_ended:
        if time.monotonic() > deadline:
            raise StormFailed(f"Job {submitted.job_id} does not end.")
        time.sleep(0.1)
    line.execute(_KEEP.format(queue=TEMPLATE))
    for number in range(QUEUES):
        client.create_queue({"name": f"bench-{number}"})


def pour(line: Connection, rows: Rows) -> None:
    """Leave nothing in Tack's tables but these."""
    at_work = rows.nodes * RUNS_ON_A_NODE if rows.full else 0
    # Of a full node a tenth is each run's, and nothing is left; an empty one takes fifty of the jobs.
    cpu, memory = (RUNS_ON_A_NODE, RUNS_ON_A_NODE) if rows.full else (125, 150)
    _empty(line)
    _copy(line, "executor", _EXECUTOR, "template.executor AS t", executor=EXECUTOR)
    _copy(
        line, "node", _NODE, _NODES, nodes=rows.nodes, executor=EXECUTOR, cpu=cpu * _CORE, memory=memory * _GIBI
    )  # fmt: skip
    line.execute(_JOB_SETS, {"queues": QUEUES})
    _put_jobs(line, at_work, state="running", sizes=1)
    _copy(line, "run", _RUN, _RUNS, executor=EXECUTOR, on_a_node=RUNS_ON_A_NODE)
    _put_jobs(line, rows.jobs, state="queued", sizes=SIZES)
    line.execute("ANALYZE")
    line.execute("CHECKPOINT")


def _empty(line: Connection) -> None:
    while True:
        # A sweep reads the same tables in another order; where the two wait for each other, one tries again.
        with suppress(psycopg.errors.DeadlockDetected), line.transaction():
            line.execute("SET LOCAL client_min_messages = warning")
            line.execute(_EMPTY.format(executor=EXECUTOR))
            return


def _put_jobs(line: Connection, count: int, *, state: str, sizes: int) -> None:
    _copy(
        line,
        "job",
        _JOB,
        _JOBS,
        count=count,
        queues=QUEUES,
        sizes=sizes,
        state=state,
        runs=int(state == "running"),
        cpu=_CORE,
        memory=_GIBI,
        ms=time.time_ns() // 1_000_000,
    )


def _copy(line: Connection, table: str, changes: Changes, source: str, **values: Any) -> None:
    made = selected(line, f"scheduler_{table}", changes)
    line.execute(f"INSERT INTO scheduler_{table} SELECT {made} FROM {source}", values)  # noqa: S608
