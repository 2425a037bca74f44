"""The rows of a storm: jobs whose runs have all just ended, kept beside Tack's tables and poured in when wanted.

Each row is a copy of one that Tack wrote itself, about a job that really ran out of memory; only ids, times, the node,
one of 16 sizes and the message are its own. They ask for nodes that are closed: rounds look at them and leave
them alone. They lie in a schema of their own, so that the same storm can be had again.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from lookout.client import Client
from tests.benchmarks.copied_rows import Changes, selected
from tests.benchmarks.job_files import RUNS_OUT_OF_MEMORY, job_file

TEMPLATE = "storm-template"
PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.01
GROWS, AVOIDS = "grows", "avoids"
_MUTATIONS: dict[str, dict[str, Any]] = {
    GROWS: {"resources": {"memory": {"static": "1Mi"}}},
    AVOIDS: {"affinity": {"avoidSameNode": True}},
}

type Connection = psycopg.Connection[Any]

_IDS = """
    CREATE UNLOGGED TABLE bench.ids AS
    SELECT n, s.id AS job_set_id, s.queue_id, 'storm-' || 1 + n %% 2 AS node,
           (lpad(to_hex(%(ms)s + n / 10), 12, '0') || substr(md5(random()::text), 1, 20))::uuid AS job_id,
           gen_random_uuid() AS run_id
      FROM generate_series(0, %(runs)s - 1) AS n
      JOIN (SELECT id, queue_id, row_number() OVER (ORDER BY id) - 1 AS turn FROM scheduler_jobset
             WHERE queue_id LIKE %(queues)s) AS s ON s.turn = n %% %(job_sets)s
"""
# The executor of the storm's runs is always heard of, has no agent that would run anything, and its two large nodes are
# closed: what asks for them would fit, and waits.
_EXECUTOR = """
    INSERT INTO scheduler_executor
    SELECT made.* FROM scheduler_executor AS t, LATERAL jsonb_populate_record(
           t, jsonb_build_object('name', 'storm', 'heartbeat_at', now() + interval '1 day')) AS made
     WHERE t.name = 'local'
        ON CONFLICT DO NOTHING
"""
_NODES = """
    INSERT INTO scheduler_node
    SELECT made.* FROM (SELECT * FROM scheduler_node WHERE executor_id = 'local' LIMIT 1) AS t,
           generate_series(1, 2) AS n,
           LATERAL jsonb_populate_record(CAST(t AS scheduler_node), jsonb_build_object(
               'id', nextval(pg_get_serial_sequence('scheduler_node', 'id')), 'executor_id', 'storm',
               'name', 'storm-' || n, 'schedulable', false, 'memory_bytes', 1::bigint << 50,
               'labels', jsonb_build_object('storm', 'here', 'kubernetes.io/hostname', 'storm-' || n))) AS made
        ON CONFLICT DO NOTHING
"""
# Whatever columns the tables have, the copies have them too.
_KEEP = "CREATE TABLE template.{name} AS SELECT t.* FROM scheduler_{name} AS t WHERE {of_the_template}"
_COPY = "CREATE UNLOGGED TABLE bench.{name} AS SELECT {made} FROM bench.ids AS i, template.{name} AS t"
_OF_TEMPLATE = {
    "job": "queue_id = %(queue)s",
    "jobspec": "job_id IN (SELECT id FROM template.job)",
    "run": "job_id IN (SELECT id FROM template.job)",
    "runerror": "run_id IN (SELECT id FROM template.run)",
}
_CHANGES: Mapping[str, Changes] = {
    "job": {
        "id": "i.job_id", "queue_id": "i.queue_id", "job_set_id": "i.job_set_id", "state": "'running'",
        "node_selector": """'{"storm": "here"}'""", "ended_at": "NULL",
        "memory_limit_bytes": "t.memory_limit_bytes + i.n % 16 * 1048576",
    },
    "jobspec": {"job_id": "i.job_id"},
    "run": {
        "id": "i.run_id", "job_id": "i.job_id", "queue_id": "i.queue_id", "executor_id": "'storm'", "node": "i.node",
        "node_id": "i.node", "settled_at": "NULL", "retryable": "NULL", "undecided_because": "''",
    },
    "runerror": {"run_id": "i.run_id", "message": "t.message || ' in run ' || i.run_id"},
}  # fmt: skip
POURED = tuple(_CHANGES)


class StormFailed(RuntimeError):
    """The storm did not come out as it must."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Storm:
    """Many runs that end at once."""

    runs: int
    queues: int
    job_sets: int
    """In all."""
    asks: str
    """What the policy asks: GROWS or AVOIDS."""

    @property
    def prefix(self) -> str:
        """Of the names of its queues."""
        return f"storm-{self.asks}-{self.job_sets}-"

    @property
    def label(self) -> str:
        sets = "one job set" if self.job_sets == 1 else f"{self.job_sets} job sets of {self.queues} queues"
        return f"{sets}, policy {'grows the memory' if self.asks == GROWS else 'avoids the node'}"


def make_template(client: Client) -> None:
    """Run a job out of memory in a queue without a policy."""
    client.create_queue({"name": TEMPLATE})
    (submitted,) = client.submit_jobs(job_file(queue=TEMPLATE, job_set=TEMPLATE, script=RUNS_OUT_OF_MEMORY))
    deadline = time.monotonic() + 60
    while not (found := client.job(submitted.job_id)).has_ended and time.monotonic() < deadline:
        time.sleep(0.1)
    if found.last_failure is None or found.last_failure.category != "oom":
        raise StormFailed(f"Job {submitted.job_id} did not run out of memory: it is {found.state}.")


def make_queues(client: Client, storm: Storm, *, cordoned: bool = True) -> None:
    """The queues of the storm with its policy attached; closed, so that rounds leave its jobs alone."""
    name = f"storm-{storm.asks}"
    rule = {"action": "Retry", "onCategory": "oom", "mutate": _MUTATIONS[storm.asks]}
    client.apply_retry_policy(
        {
            "apiVersion": "armadaproject.io/v1beta1",
            "kind": "RetryPolicy",
            "name": name,
            "retryLimit": 1_000,
            "defaultAction": "Fail",
            "rules": [rule],
        }
    )
    for number in range(storm.queues):
        client.create_queue(
            {"name": f"{storm.prefix}{number}", "retryPolicies": [name], "cordoned": cordoned}
        )


def keep_template(line: Connection) -> None:
    """Put the rows of the template aside; storms empty the tables they are in."""
    with line.transaction():
        line.execute("CREATE SCHEMA template")
        for name, condition in _OF_TEMPLATE.items():
            line.execute(_KEEP.format(name=name, of_the_template=condition), {"queue": TEMPLATE})


def prepare(line: Connection, storm: Storm) -> None:
    """Make the rows of the storm, beside Tack's tables."""
    with line.transaction():
        line.execute("SET LOCAL client_min_messages = warning")
        line.execute("DROP SCHEMA IF EXISTS bench CASCADE")
        line.execute("CREATE SCHEMA bench")
        line.execute(_EXECUTOR)
        line.execute(_NODES)
        _make_job_sets(line, storm)
        values = {"ms": time.time_ns() // 1_000_000, "queues": f"{storm.prefix}%"}
        line.execute(_IDS, {**values, "runs": storm.runs, "job_sets": storm.job_sets})
        for name, changes in _CHANGES.items():
            made = selected(line, f"scheduler_{name}", changes)
            line.execute(_COPY.format(name=name, made=made))


def _make_job_sets(line: Connection, storm: Storm) -> None:
    line.execute(
        """INSERT INTO scheduler_jobset (queue_id, name, last_event)
           SELECT %s || n %% %s, 'set ' || n, 0 FROM generate_series(0, %s - 1) AS n
               ON CONFLICT DO NOTHING""",
        [storm.prefix, storm.queues, storm.job_sets],
    )


@contextmanager
def poured(line: Connection, other: Connection) -> Iterator[None]:
    """Empty Tack's tables and pour the storm into them, to be seen by others when the block is left.

    Everything but the commit is done when the block begins, the checkpoint included.
    """
    _empty(line)
    other.execute("VACUUM scheduler_jobset")
    with line.transaction():
        pour(line)
        other.execute("CHECKPOINT")
        yield


def _empty(line: Connection) -> None:
    """All that belongs to jobs goes, indexes and all, so that each storm finds the same tables."""
    while True:
        # A sweep reads the same tables in another order; where the two wait for each other, one tries again.
        with suppress(psycopg.errors.DeadlockDetected), line.transaction():
            line.execute("SET LOCAL client_min_messages = warning")
            line.execute("TRUNCATE scheduler_job CASCADE")
            line.execute("UPDATE scheduler_jobset SET last_event = 0 WHERE last_event > 0")
            return


def pour(line: Connection) -> None:
    """Put the rows into Tack's tables."""
    for name in POURED:
        line.execute(f"INSERT INTO scheduler_{name} SELECT * FROM bench.{name}")  # noqa: S608
    line.execute("ANALYZE " + ", ".join(f"scheduler_{name}" for name in POURED))


def newest_events(line: Connection) -> int:
    """How many events the job sets of storms have had, all together. Others may be at work meanwhile."""
    found = line.execute(
        "SELECT coalesce(sum(last_event), 0) FROM scheduler_jobset WHERE queue_id LIKE 'storm-%'"
    ).fetchone()
    return int(found[0]) if found else 0


def wait_for_events(line: Connection, count: int) -> float:
    """Wait until the job sets have had so many; the moment it was seen, by `time.perf_counter`.

    Settling tells one event of each run. Looking for these costs nothing, looking for runs that are left would.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := newest_events(line)) < count:
        if time.monotonic() > deadline:
            raise StormFailed(f"After {PATIENCE_SECONDS:.0f} s {found:,} of {count:,} events were told.")
        time.sleep(LOOK_SECONDS)
    return time.perf_counter()


def check(line: Connection, storm: Storm) -> None:
    """Every run was settled once and its job requeued. Raises StormFailed."""
    found = line.execute(
        """SELECT (SELECT count(*) FROM scheduler_decision WHERE verdict = 'retry'),
                  (SELECT count(*) FROM scheduler_job WHERE state = 'queued' AND queued_version = 2),
                  (SELECT count(*) FROM scheduler_event WHERE kind = 'failed'),
                  (SELECT coalesce(sum(last_event), 0) FROM scheduler_jobset)"""
    ).fetchone()
    if found != (storm.runs,) * 4:
        raise StormFailed(f"Of {storm.runs} runs: decisions, jobs queued, events, their numbers: {found}")
