"""A past to ask questions of: jobs, runs, decisions and errors of 42 days, the same for the same number of jobs.

Retried jobs, twelve skewed categories, queues of very different size, one of which went quiet early, 16 bad nodes, reports
that come late, and active jobs among the newest only. The database makes the rows itself, a slice of them at a time, which
takes it a fraction of the time that reading them from a client would.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from scheduler.models import Decision, Job, JobAnnotation, JobSpec, Queue, Run, RunError

SLICE = 1_000_000
"""Jobs made at a time: no others lie on the disk twice."""

# Neutral tables first; every figure of a row follows from its number.
_FUNCTION = """
    CREATE FUNCTION bench_u(i bigint, salt bigint) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
        $$ SELECT (hashint8extended(i, salt) & 2147483647) / 2147483648.0 $$
"""
_NEUTRAL = """
    CREATE UNLOGGED TABLE bench_job AS
    WITH s AS (
        SELECT i, CASE WHEN u_q >= 39 AND i > 0.3 * {n} THEN 0 ELSE u_q END AS q,
               timestamptz '{beginning}' + i * {step} AS submitted,
               bench_u(i, 2) AS u_state, bench_u(i, 3) AS u_runs, bench_u(i, 4) AS u_res, bench_u(i, 5) AS u_dur
          FROM (SELECT i, floor(40 * power(bench_u(i, 1), 2.5))::int AS u_q FROM generate_series({first}, {last}) i) g)
    SELECT s.*, (lpad(to_hex(floor(extract(epoch FROM submitted) * 1000)::bigint), 12, '0') || lpad(to_hex(i), 20, '0'))::uuid AS id,
           'queue-' || lpad(q::text, 2, '0') AS queue,
           'set-' || lpad(q::text, 2, '0') || '-' || lpad((i / 20000)::text, 4, '0') AS job_set,
           CASE WHEN i > {over} THEN
                     (ARRAY['queued','queued','queued','queued','leased','pending','running','running','running','running'])[1 + floor(10 * u_state)::int]
                WHEN u_state < 0.80 THEN 'succeeded' WHEN u_state < 0.93 THEN 'failed' WHEN u_state < 0.975 THEN 'cancelled'
                WHEN u_state < 0.997 THEN 'preempted' ELSE 'rejected' END AS state,
           (ARRAY['default','dev','staging','research-red','research-blue','research-green','research-yellow'])[1 + i % 7] AS namespace,
           1000 * (ARRAY[1,2,4,8,16,32])[1 + floor(6 * u_res)::int] AS cpu,
           (ARRAY[1,4,64,256])[1 + floor(4 * bench_u(i, 6))::int]::bigint * 1073741824 AS memory
      FROM s;
    CREATE UNLOGGED TABLE bench_run AS
    WITH r AS (
        SELECT j.*, k, k = n_runs AS last,
               CASE WHEN bench_u(j.i * 8 + k, 11) < 0.10 THEN floor(16 * bench_u(j.i * 8 + k, 12))::int
                    ELSE floor(3200 * bench_u(j.i * 8 + k, 13))::int END AS nd,
               submitted + (k - 1) * interval '9 min' AS queued
          FROM (SELECT *, CASE WHEN state IN ('queued', 'rejected') THEN 0 WHEN state = 'failed' THEN 1 + floor(4 * u_runs)::int
                               WHEN state = 'succeeded' AND u_runs < 0.08 THEN 2 + (i % 2) ELSE 1 END AS n_runs FROM bench_job) j,
               generate_series(1, n_runs) k)
    SELECT (lpad(to_hex(i), 8, '0') || lpad(to_hex(hashint8(i * 8 + k) & 65535), 4, '0') || '40008000' || lpad(to_hex(i * 8 + k), 12, '0'))::uuid AS id,
           id AS job_id, submitted, queue, k, last, state AS job_state, cpu, memory,
           'cluster-' || lpad((nd / 80)::text, 2, '0') AS executor,
           'cluster-' || lpad((nd / 80)::text, 2, '0') || '-node-' || lpad((nd % 80)::text, 2, '0') AS node,
           (ARRAY['general','high-memory','high-cpu','gpu'])[1 + (nd / 80) % 4] AS pool, queued + interval '5 s' AS leased,
           CASE WHEN state <> 'leased' OR NOT last THEN queued + interval '8 s' END AS pending,
           CASE WHEN state NOT IN ('pending', 'leased') OR NOT last THEN queued + interval '20 s' END AS started,
           CASE WHEN state IN ('succeeded', 'failed', 'cancelled', 'preempted') OR NOT last
                THEN queued + interval '20 s' + u_dur * interval '8 min' END AS ended,
           CASE WHEN NOT last THEN CASE WHEN bench_u(i * 8 + k, 14) < 0.15 THEN 'lease_returned' ELSE 'failed' END ELSE state END AS state,
           CASE WHEN bench_u(i * 8 + k, 18) < 0.02 THEN bench_u(i * 8 + k, 19) * interval '5 hours' ELSE '2 s' END AS late,
           CASE WHEN NOT last OR state = 'failed' THEN (ARRAY[1,137,137,139,143,255])[1 + floor(6 * bench_u(i * 8 + k, 15))::int]
                WHEN state = 'succeeded' THEN 0 END AS exit_code,
           CASE WHEN NOT last OR state = 'failed' THEN 'category-' || lpad(floor(12 * power(bench_u(i * 8 + k, 16), 2))::int::text, 2, '0') ELSE '' END AS category,
           CASE WHEN NOT last OR state = 'failed' THEN 'sub-' || lpad(floor(40 * power(bench_u(i * 8 + k, 17), 2))::int::text, 2, '0') ELSE '' END AS subcategory
      FROM r;
    CREATE INDEX ON bench_run (job_id) WHERE last;
"""
_JOB_SETS = """
    INSERT INTO scheduler_jobset (queue_id, name, last_event) SELECT DISTINCT queue, job_set, 0 FROM bench_job ORDER BY 1, 2
    ON CONFLICT DO NOTHING
"""
OF_JOBS = {
    "id": "b.id", "queue_id": "b.queue", "job_set_id": "s.id", "owner": "'user-' || b.i % 211", "namespace": "b.namespace",
    "priority": "1 + b.i % 2000", "priority_class": "(ARRAY['armada-default','armada-preemptible'])[1 + b.i % 2]",
    "annotations": """jsonb_build_object('example.com/a', 'a' || b.i % 10, 'example.com/b', 'b' || b.i % 100,
        'example.com/c', 'c' || b.i % 1000, 'example.com/d', 'd' || b.i % 10000, 'example.com/e', 'e' || b.i % 100000)""",
    "state": "b.state", "submitted_at": "b.submitted", "cpu_request_millicores": "b.cpu", "memory_request_bytes": "b.memory",
    "memory_limit_bytes": "b.memory", "submitted_memory_bytes": "b.memory",
    "state_changed_at": "coalesce(r.ended, r.started, r.pending, r.leased, b.submitted)",
    "ended_at": "CASE WHEN b.state IN ('succeeded', 'failed', 'cancelled', 'preempted', 'rejected') THEN coalesce(r.ended, b.submitted) END",
    "recorded_at": "CASE WHEN b.state IN ('succeeded', 'failed', 'cancelled', 'preempted', 'rejected') THEN coalesce(r.ended + r.late, b.submitted) END",
    "run_count": "coalesce(r.k, 0)", "last_executor": "r.executor", "last_node": "r.node", "last_pool": "r.pool",
    "last_category": "CASE WHEN b.state = 'rejected' THEN 'internal' ELSE f.category END",
    "last_subcategory": "CASE WHEN b.state = 'rejected' THEN 'job-rejected' ELSE f.subcategory END",
}  # fmt: skip
_JOBS = """
    INSERT INTO scheduler_job ({columns}) SELECT {values}
      FROM bench_job b JOIN scheduler_jobset s ON s.queue_id = b.queue AND s.name = b.job_set
      LEFT JOIN bench_run r ON r.job_id = b.id AND r.last
      LEFT JOIN (SELECT DISTINCT ON (job_id) job_id, category, subcategory FROM bench_run WHERE state = 'failed'
               ORDER BY job_id, k DESC) AS f ON f.job_id = b.id ORDER BY b.i
"""
OF_RUNS = {
    "id": "b.id", "job_id": "b.job_id", "queue_id": "b.queue", "number": "b.k", "executor_id": "b.executor", "node": "b.node",
    "node_id": "b.node", "pool": "b.pool", "state": "b.state", "cpu_request_millicores": "b.cpu", "memory_limit_bytes": "b.memory",
    "job_submitted_at": "b.submitted", "leased_at": "b.leased", "pending_at": "b.pending", "started_at": "b.started", "ended_at": "b.ended",
    "recorded_at": "b.ended + b.late", "settled_at": "b.ended + b.late", "attempted": "b.category <> ''", "exit_code": "b.exit_code",
    "category": "b.category", "subcategory": "b.subcategory",
    "core_seconds": "coalesce(b.cpu / 1000.0 * extract(epoch FROM b.ended - b.started), 0)",
    "fingerprint": "CASE WHEN b.category <> '' THEN left(md5(b.category || b.subcategory), 16) ELSE '' END",
    "retryable": "CASE WHEN b.category <> '' THEN NOT b.last END",
}  # fmt: skip
_RUNS = "INSERT INTO scheduler_run ({columns}) SELECT {values} FROM bench_run b ORDER BY b.leased"
OF_DECISIONS = {
    "run_id": "b.id", "job_id": "b.job_id", "policy_name": "'policy-' || left(md5(b.queue), 1)", "policy_version": "1",
    "rule_index": "CASE WHEN NOT b.last THEN b.exit_code % 3 END",
    "verdict": "CASE WHEN b.last THEN 'fail_policy_limit' ELSE 'retry' END", "reason": "'matched rule'",
    "policy_used_before": "b.k - 1", "policy_used_after": "b.k", "policy_limit": "3", "global_used_before": "b.k - 1",
    "global_used_after": "b.k", "global_limit": "5", "decided_at": "b.ended + b.late + interval '20 ms'",
}  # fmt: skip
_DECISIONS = "INSERT INTO scheduler_decision ({columns}) SELECT {values} FROM bench_run b WHERE b.state = 'failed' ORDER BY b.leased"
OF_ERRORS = {
    "run_id": "b.id",
    "reason": "'AppError'",
    "message": "'Container main of ' || b.node || ' ended with code ' || b.exit_code || ': ' || b.category || ' ' || b.subcategory",
}
_ERRORS = "INSERT INTO scheduler_runerror ({columns}) SELECT {values} FROM bench_run b WHERE b.state = 'failed' ORDER BY b.leased"
OF_SPECS = {
    "job_id": "b.id",
    "pod_spec": """jsonb_build_object('restartPolicy', 'Never', 'containers', jsonb_build_array(jsonb_build_object('name', 'main',
        'image', 'registry.example.com/batch/worker:' || b.i % 50, 'command', '["/bin/sh", "-c", "work"]'::jsonb)))""",
}
_SPECS = "INSERT INTO scheduler_jobspec ({columns}) SELECT {values} FROM bench_job b ORDER BY b.i"
OF_ANNOTATIONS = {"key": "a.key", "value": "a.value", "job_submitted_at": "b.submitted", "job_id": "b.id"}
_ANNOTATIONS = f"""
    INSERT INTO scheduler_jobannotation ({{columns}}) SELECT {{values}}
      FROM bench_job b CROSS JOIN LATERAL jsonb_each_text({OF_JOBS["annotations"]}) AS a ORDER BY b.i
"""  # noqa: S608 - the words are ours


type _Table = tuple[str, type[models.Model], Mapping[str, str]]

_TABLES: Sequence[_Table] = (
    (_JOBS, Job, OF_JOBS),
    (_ANNOTATIONS, JobAnnotation, OF_ANNOTATIONS),
    (_RUNS, Run, OF_RUNS),
    (_DECISIONS, Decision, OF_DECISIONS),
    (_ERRORS, RunError, OF_ERRORS),
    (_SPECS, JobSpec, OF_SPECS),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """Some of the jobs, by their numbers."""

    first: int
    last: int
    total: int
    """So many make up the past: queues go quiet after a part of them."""
    beginning: str
    """Of the past, as the database writes a moment."""
    step: str
    """From one submission to the next, as SQL."""
    over: float
    """Jobs up to this number have ended."""


def make_history(
    jobs: int, *, only: Collection[type[models.Model]] = (), say: Callable[[str], None] | None = None
) -> None:
    """Fill the empty tables, or only some, with the past of so many jobs, and have the database look at them.

    Where there are several slices, `say` is told of each.
    """
    tables = [each for each in _TABLES if not only or each[1] in only]
    slices = _slices(jobs)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # what triggers would note is in the rows
        for number, part in enumerate(slices, 1):
            started = time.perf_counter()
            _fill(cursor, part, tables)
            if say and len(slices) > 1:
                say(f"  slice {number} of {len(slices)} in {time.perf_counter() - started:,.0f} s")
        cursor.execute("RESET session_replication_role")
        names = [model._meta.db_table for _, model, _ in tables]
        cursor.execute(f"ANALYZE scheduler_queue, scheduler_jobset, {', '.join(names)}")


def _slices(jobs: int) -> Sequence[Slice]:
    """All from one moment, whenever each is made."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT date_trunc('second', now()) - interval '42 days'")
        (beginning,) = cursor.fetchone()
    return [
        Slice(
            first=first,
            last=min(first + SLICE - 1, jobs),
            total=jobs,
            beginning=beginning.isoformat(),
            step=f"(interval '42 days' / {jobs})",
            over=jobs * 0.97,
        )
        for first in range(1, jobs + 1, SLICE)
    ]


def _fill(cursor: CursorWrapper, part: Slice, tables: Sequence[_Table]) -> None:
    with neutral(cursor, part):
        for statement, model, values in tables:
            cursor.execute(filled(statement, model, values))


@contextmanager
def neutral(cursor: CursorWrapper, part: Slice) -> Iterator[None]:
    """While this lasts, `bench_job` and `bench_run` say what the slice is about; its queues and job sets are there."""
    cursor.execute(_FUNCTION)
    cursor.execute(
        _NEUTRAL.format(
            first=part.first, last=part.last, n=part.total, over=part.over,
            beginning=part.beginning, step=part.step,
        )
    )  # fmt: skip
    cursor.execute("ANALYZE bench_job, bench_run")
    cursor.execute("SELECT DISTINCT queue FROM bench_job ORDER BY 1")
    Queue.objects.bulk_create((Queue(name=name) for (name,) in cursor.fetchall()), ignore_conflicts=True)
    cursor.execute(_JOB_SETS)
    yield
    cursor.execute("DROP TABLE bench_job, bench_run")
    cursor.execute("DROP FUNCTION bench_u")


def filled(statement: str, model: type[models.Model], given: Mapping[str, str]) -> str:
    """The statement with all columns of the model: as given, else their defaults."""
    fields = model._meta.concrete_fields
    values = {column: given.get(column) or _literal(field) for field in fields if (column := field.column)}
    return statement.format(columns=", ".join(values), values=", ".join(values.values()))


def _literal(field: "models.Field[Any, Any]") -> str:
    value = field.get_db_prep_save(field.get_default(), connection)
    connection.ensure_connection()
    return sql.Literal(value).as_string(connection.connection)
