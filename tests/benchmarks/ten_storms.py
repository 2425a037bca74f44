"""Storm after storm over the same jobs, each leased, started, failed and settled again, as the rows see it.

Between the storms the rows are written in the steps in which leasing and reporting write them, so that updates, dead
rows and index entries come about as they do in a Tack that runs.
"""

import time
from collections.abc import Callable

from tests.benchmarks.ended_runs import Connection, StormFailed, newest_events, wait_for_events

_LEASE = (
    """INSERT INTO scheduler_run SELECT made.* FROM scheduler_job j JOIN bench.run t ON t.job_id = j.id,
              LATERAL jsonb_populate_record(t, jsonb_build_object(
                  'id', gen_random_uuid(), 'number', j.run_count + 1, 'state', 'leased', 'ended_at', NULL,
                  'leased_at', clock_timestamp(), 'pending_at', NULL, 'started_at', NULL)) AS made
        WHERE j.state = 'queued' AND j.queue_id LIKE 'storm-%'""",
    """UPDATE scheduler_job SET state = 'leased', state_changed_at = clock_timestamp(), version = version + 1,
              run_count = run_count + 1 WHERE state = 'queued' AND queue_id LIKE 'storm-%'""",
)
_START = (
    """UPDATE scheduler_run SET state = 'running', pending_at = clock_timestamp(), started_at = clock_timestamp()
        WHERE state = 'leased' AND queue_id LIKE 'storm-%'""",
    """UPDATE scheduler_job SET state = 'running', state_changed_at = clock_timestamp(), version = version + 1
        WHERE state = 'leased' AND queue_id LIKE 'storm-%'""",
)
_FAIL = (
    """INSERT INTO scheduler_runerror SELECT made.* FROM scheduler_run r JOIN bench.run b ON b.job_id = r.job_id
              JOIN bench.runerror t ON t.run_id = b.id,
              LATERAL jsonb_populate_record(t, jsonb_build_object('run_id', r.id)) AS made
        WHERE r.state = 'running' AND r.queue_id LIKE 'storm-%'""",
    """UPDATE scheduler_run SET state = 'failed', ended_at = clock_timestamp(), recorded_at = clock_timestamp()
        WHERE state = 'running' AND queue_id LIKE 'storm-%'""",
)


def next_storm(line: Connection, ring: Callable[[], None]) -> float:
    """Lease, start and fail every queued job of the storm, ring, and wait; the seconds that settling took.

    Raises StormFailed when there was none.
    """
    for statements in (_LEASE, _START, _FAIL):
        with line.transaction():
            for statement in statements:
                if not line.execute(statement).rowcount:
                    raise StormFailed("The storm is over: none of its jobs is queued.")
    events, runs = newest_events(line), line.execute("SELECT count(*) FROM bench.ids").fetchone()
    started = time.perf_counter()
    ring()
    return wait_for_events(line, events + (runs[0] if runs else 0)) - started
