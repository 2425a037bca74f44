"""Jobs that come after the past of `tack bench history`, and the whole lives of their runs, a second's worth at a time.

The statements write what Tack's verbs write, to the same tables in the same transactions: a submission, a round, reports
of three kinds, a settlement. Who decides is left out, the values are at hand; what the database does of its own accord,
by keys, checks, triggers and indexes, is not.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from scheduler.models import Decision, Job, JobSpec, Run, RunError
from tests.benchmarks.history_data import (
    OF_DECISIONS,
    OF_ERRORS,
    OF_JOBS,
    OF_RUNS,
    OF_SPECS,
    Slice,
    filled,
    neutral,
)

JOBS_A_SECOND = 777
"""New jobs that have a thousand runs among them, retries included."""
LONGEST = 4
"""Runs of a job, at most: each in the second after the one before."""

# Each job comes in a second of its own, and its first run; whoever asks looks at one second.
_SECONDS = """
    CREATE UNLOGGED TABLE bench_coming AS
    SELECT b.*, s.id AS job_set_id, (b.i - {first}) / {jobs} AS second
      FROM bench_job b JOIN scheduler_jobset s ON s.queue_id = b.queue AND s.name = b.job_set;
    CREATE UNLOGGED TABLE bench_life AS
    SELECT r.*, j.job_set_id, j.namespace, j.second + r.k - 1 AS second FROM bench_run r JOIN bench_coming j ON j.id = r.job_id;
    CREATE INDEX ON bench_coming (second);
    CREATE INDEX ON bench_life (second);
    CREATE VIEW bench_new_job AS SELECT * FROM bench_coming WHERE second = current_setting('bench.second')::int;
    CREATE VIEW bench_new_run AS SELECT * FROM bench_life WHERE second = current_setting('bench.second')::int;
    ANALYZE bench_coming, bench_life
"""
_FORGET = "DROP VIEW bench_new_job, bench_new_run; DROP TABLE bench_coming, bench_life"

_LATER = ("ended_at", "recorded_at", "run_count")
_SUBMITTED = {
    **{name: value for name, value in OF_JOBS.items() if name not in _LATER and not name.startswith("last_")},
    "job_set_id": "b.job_set_id", "submitted_at": "now()", "state_changed_at": "now()",
    "state": "CASE b.state WHEN 'rejected' THEN 'rejected' ELSE 'queued' END",
    "ended_at": "CASE b.state WHEN 'rejected' THEN now() END",
}  # fmt: skip
_SUBMIT = "INSERT INTO scheduler_job ({columns}) SELECT {values} FROM bench_new_job b ORDER BY b.i"
_SPECIFY = "INSERT INTO scheduler_jobspec ({columns}) SELECT {values} FROM bench_new_job b ORDER BY b.i"

_HOLD = """
    SELECT count(*) FROM (SELECT FROM scheduler_job WHERE id IN (SELECT job_id FROM bench_new_run) ORDER BY id
                             FOR NO KEY UPDATE) AS held
"""
_PLACE = ("id", "job_id", "queue_id", "number", "executor_id", "node", "node_id", "pool")
_RESERVED = ("cpu_request_millicores", "memory_limit_bytes")
_LEASED = {
    **{column: OF_RUNS[column] for column in (*_PLACE, *_RESERVED)},
    "leased_at": "now()", "job_submitted_at": "j.submitted_at", "priority_class": "j.priority_class",
}  # fmt: skip
_LEASE = """
    INSERT INTO scheduler_run ({columns}) SELECT {values} FROM bench_new_run b JOIN scheduler_job j ON j.id = b.job_id
"""
_MOVE = """
    UPDATE scheduler_job j SET state = {state}, state_changed_at = now(), version = j.version + 1, {more}
      FROM bench_new_run b WHERE j.id = b.job_id AND {of}
"""
_GO_ON = "UPDATE scheduler_run r SET state = '{state}', {time} = now() FROM bench_new_run b WHERE r.id = b.id"

_ALSO_ENDED = ("attempted", "exit_code", "category", "subcategory", "core_seconds", "fingerprint")
_BADLY, _FAILED = "b.state IN ('failed', 'lease_returned')", "b.state = 'failed'"
_END = f"""
    UPDATE scheduler_run r
       SET state = b.state, ended_at = now(), recorded_at = now(), settled_at = CASE WHEN NOT {_BADLY} THEN now() END,
           undecided_because = CASE b.state WHEN 'cancelled' THEN 'cancelled' WHEN 'preempted' THEN 'preempted' ELSE '' END,
           {", ".join(f"{column} = {OF_RUNS[column]}" for column in _ALSO_ENDED)}
      FROM bench_new_run b WHERE r.id = b.id
"""  # noqa: S608 - all of it stands in these modules
_SAY_WHY = (
    f"INSERT INTO scheduler_runerror ({{columns}}) SELECT {{values}} FROM bench_new_run b WHERE {_FAILED}"  # noqa: S608
)
_DECIDE = (
    f"INSERT INTO scheduler_decision ({{columns}}) SELECT {{values}} FROM bench_new_run b WHERE {_FAILED}"  # noqa: S608
)
_DECIDED = {**OF_DECISIONS, "decided_at": "now()"}
_SETTLE = f"""
    UPDATE scheduler_run r
       SET settled_at = now(), retryable = NOT b.last,
           undecided_because = CASE b.state WHEN 'lease_returned' THEN 'lease_return' ELSE '' END
      FROM bench_new_run b WHERE r.id = b.id AND {_BADLY}
"""  # noqa: S608

_TELL = """
    WITH told AS MATERIALIZED (
        SELECT b.job_set_id, {ids}, e.kind, e.payload, row_number() OVER (PARTITION BY b.job_set_id ORDER BY b.id, e.n) AS turn
          FROM {table} b CROSS JOIN LATERAL (VALUES {events}) AS e(n, kind, payload) WHERE {of}),
    asked AS (SELECT job_set_id AS id, count(*) AS n FROM told GROUP BY 1),
    held AS (SELECT s.id FROM scheduler_jobset s JOIN asked ON asked.id = s.id ORDER BY s.id FOR NO KEY UPDATE OF s),
    taken AS (UPDATE scheduler_jobset s SET last_event = s.last_event + asked.n
                FROM asked JOIN held ON held.id = asked.id WHERE s.id = asked.id
           RETURNING s.id, s.last_event - asked.n AS before)
    INSERT INTO scheduler_event (job_set_id, number, job_id, run_id, kind, created, payload)
    SELECT told.job_set_id, before + turn, job_id, run_id, kind, now(), payload FROM told JOIN taken ON taken.id = job_set_id
"""
_TOLD_OF_JOBS = f"""
    (1, 'submitted', jsonb_build_object('job', jsonb_build_object('id', b.id, 'jobSetId', b.job_set, 'queue', b.queue,
        'namespace', b.namespace, 'owner', {OF_JOBS["owner"]}, 'annotations', {OF_JOBS["annotations"]}))),
    (2, 'queued', '{{}}'), (3, 'failed', jsonb_build_object('reason', b.state))
"""
_POD = """
    'clusterId', b.executor, 'kubernetesId', b.id, 'nodeName', b.node, 'podNumber', 0, 'podName', 'armada-' || b.job_id,
    'podNamespace', b.namespace
"""
_WHY = """
    'reason', 'ended with code ' || b.exit_code, 'failureCategory', b.category, 'failureSubcategory', b.subcategory,
    'retryable', NOT b.last
"""
_ENDED_AS = "CASE b.state WHEN 'lease_returned' THEN 'leaseReturned' ELSE b.state END"


@contextmanager
def arrivals(*, after: int, seconds: int, jobs: int = JOBS_A_SECOND) -> Iterator[Sequence[int]]:
    """While this lasts, so many jobs for each of so many seconds are ready to come; how many runs each second has."""
    with connection.cursor() as cursor:
        with neutral(cursor, _later(cursor, after=after, jobs=seconds * jobs)):
            cursor.execute(_SECONDS.format(first=after + 1, jobs=jobs))
        cursor.execute("SELECT count(*) FROM bench_life GROUP BY second ORDER BY second LIMIT %s", [seconds])
        yield [runs for (runs,) in cursor.fetchall()]
        cursor.execute(_FORGET)


def _later(cursor: CursorWrapper, *, after: int, jobs: int) -> Slice:
    """Jobs from now on, all of which end."""
    cursor.execute("SELECT now() - interval '1 millisecond' * %s", [after])
    (beginning,) = cursor.fetchone()
    return Slice(
        first=after + 1,
        last=after + jobs,
        total=after,
        beginning=beginning.isoformat(),
        step="interval '1 millisecond'",
        over=after + jobs,
    )


class Second:
    """Writes what happens in a second, from the submission of its jobs to the settlement of its runs."""

    def __init__(self) -> None:
        self._verbs = (
            _submission(),
            _round(),
            _report("pending", "pending_at"),
            _report("running", "started_at"),
            _ends(),
            _settlement(),
        )

    def __call__(self, number: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('bench.second', %s, false)", [str(number)])
            for statements in self._verbs:
                with transaction.atomic():
                    for statement in statements:
                        cursor.execute(statement)


def _submission() -> Sequence[str]:
    told = _tell(_TOLD_OF_JOBS, of="e.n < 3 OR b.state = 'rejected'", of_jobs=True)
    return filled(_SUBMIT, Job, _SUBMITTED), filled(_SPECIFY, JobSpec, OF_SPECS), told


def _round() -> Sequence[str]:
    place = "run_count = run_count + 1, last_executor = b.executor, last_node = b.node, last_pool = b.pool"
    told = _tell("(1, 'leased', jsonb_build_object('clusterId', b.executor, 'pool', b.pool))")
    return _HOLD, filled(_LEASE, Run, _LEASED), _MOVE.format(state="'leased'", more=place, of="true"), told


def _report(state: str, time: str) -> Sequence[str]:
    """All runs went on so far."""
    told = _tell(f"(1, '{state}', jsonb_build_object({_POD}, 'pool', b.pool))")
    moved = _MOVE.format(state=f"'{state}'", more="ended_at = NULL", of="true")
    return _HOLD, _GO_ON.format(state=state, time=time), moved, told


def _ends() -> Sequence[str]:
    """All runs ended. Their jobs with them, unless they await a settlement."""
    moved = _MOVE.format(state="b.state", more="ended_at = now()", of=f"NOT {_BADLY}")
    told = _tell(f"(1, {_ENDED_AS}, jsonb_build_object({_POD}))", of=f"NOT {_FAILED}")
    return _HOLD, _END, moved, filled(_SAY_WHY, RunError, OF_ERRORS), told


def _settlement() -> Sequence[str]:
    """What failed is decided about; jobs wait for their next run, or have failed."""
    moved = _MOVE.format(
        state="CASE WHEN b.last THEN 'failed' ELSE 'queued' END",
        more="ended_at = CASE WHEN b.last THEN now() END, queued_version = queued_version + (NOT b.last)::int",
        of=_BADLY,
    )
    told = _tell(f"(1, 'failed', jsonb_build_object({_POD}, {_WHY}))", of=_FAILED)
    return _HOLD, filled(_DECIDE, Decision, _DECIDED), _SETTLE, moved, told


def _tell(events: str, *, of: str = "true", of_jobs: bool = False) -> str:
    """Events of the second's runs, or of its jobs, numbered as `Event.objects.append` does it."""
    ids = "b.id AS job_id, NULL::uuid AS run_id" if of_jobs else "b.job_id, b.id AS run_id"
    table = "bench_new_job" if of_jobs else "bench_new_run"
    return _TELL.format(ids=ids, table=table, events=events, of=of)
