"""What is too old to keep: the SQL that deletes it, each time a little, and nothing of it by halves.

Whatever somebody holds is passed over and left for the next time.
"""

from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

# One statement, so one snapshot: a job goes with everything about it. Something written about it meanwhile fails the
# whole transaction by its foreign key. What was counted of it is taken off the totals.
_DELETE_JOBS = """
    WITH gone AS MATERIALIZED (
        SELECT id, queue_id, state, state_changed_at, ended_at, submitted_at FROM scheduler_job
         WHERE recorded_at < %(before)s ORDER BY recorded_at LIMIT %(most)s FOR UPDATE SKIP LOCKED
    ), their_runs AS MATERIALIZED (SELECT id FROM scheduler_run WHERE job_id IN (SELECT id FROM gone)),
    outputs AS (DELETE FROM scheduler_runoutput WHERE run_id IN (SELECT id FROM their_runs) RETURNING 1),
    errors AS (DELETE FROM scheduler_runerror WHERE run_id IN (SELECT id FROM their_runs)),
    decisions AS (DELETE FROM scheduler_decision WHERE job_id IN (SELECT id FROM gone)),
    events AS (DELETE FROM scheduler_event WHERE job_id IN (SELECT id FROM gone) RETURNING 1),
    specs AS (DELETE FROM scheduler_jobspec WHERE job_id IN (SELECT id FROM gone)),
    runs AS (DELETE FROM scheduler_run WHERE id IN (SELECT id FROM their_runs) RETURNING 1),
    jobs AS (DELETE FROM scheduler_job WHERE id IN (SELECT id FROM gone) RETURNING 1),
    uncounted AS (
        UPDATE scheduler_jobtotal AS total
           SET jobs = total.jobs - less.jobs, changed_seconds = total.changed_seconds - less.changed_seconds,
               lasted_seconds = total.lasted_seconds - less.lasted_seconds
          FROM (SELECT queue_id, state, count(*) AS jobs, sum(extract(epoch FROM state_changed_at)) AS changed_seconds,
                       sum(extract(epoch FROM ended_at - submitted_at)) AS lasted_seconds
                  FROM gone GROUP BY queue_id, state) AS less
         WHERE total.queue = less.queue_id AND total.state = less.state
    )
    SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM runs), (SELECT count(*) FROM events),
           (SELECT count(*) FROM outputs)
"""
_UNTIL = """
    SELECT coalesce((SELECT recorded_at FROM {table} WHERE recorded_at > %(since)s AND recorded_at < %(before)s
                   ORDER BY recorded_at OFFSET %(most)s LIMIT 1), %(before)s)
"""
_DELETE_OUTPUTS = """
    WITH gone AS MATERIALIZED (
        SELECT o.run_id FROM scheduler_run r JOIN scheduler_runoutput o ON o.run_id = r.id
         WHERE r.recorded_at >= %(since)s AND r.recorded_at < %(until)s FOR UPDATE OF o SKIP LOCKED
    ), done AS (DELETE FROM scheduler_runoutput WHERE run_id IN (SELECT run_id FROM gone) RETURNING 1)
    SELECT (SELECT count(*) FROM done),
           (SELECT min(r.recorded_at) FROM scheduler_run r JOIN scheduler_runoutput o ON o.run_id = r.id
             WHERE r.recorded_at >= %(since)s AND r.recorded_at < %(until)s AND r.id NOT IN (SELECT run_id FROM gone))
"""
_FORGET_CLIENT_IDS = """
    WITH gone AS MATERIALIZED (
        SELECT id FROM scheduler_job
         WHERE recorded_at >= %(since)s AND recorded_at < %(until)s AND client_id IS NOT NULL
           FOR NO KEY UPDATE SKIP LOCKED
    ), done AS (UPDATE scheduler_job SET client_id = NULL WHERE id IN (SELECT id FROM gone) RETURNING 1)
    SELECT (SELECT count(*) FROM done),
           (SELECT min(recorded_at) FROM scheduler_job
             WHERE recorded_at >= %(since)s AND recorded_at < %(until)s AND client_id IS NOT NULL
               AND id NOT IN (SELECT id FROM gone))
"""
# Together: what one of these tables tells is taken off what another tells.
_DELETE_NODE_DAYS = """
    WITH old AS MATERIALIZED (SELECT date_trunc('day', %(before)s, 'UTC') AS day),
    totals AS (DELETE FROM scheduler_nodedaytotal WHERE day < (SELECT day FROM old)),
    pools AS (DELETE FROM scheduler_poolfailureday WHERE day < (SELECT day FROM old))
    DELETE FROM scheduler_nodefailureday WHERE day < (SELECT day FROM old)
"""
_OLD_JOBS = """
    WITH old AS MATERIALIZED (SELECT id FROM scheduler_job WHERE recorded_at < %(before)s)
    SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM scheduler_run WHERE job_id IN (SELECT id FROM old)),
           (SELECT count(*) FROM scheduler_event WHERE job_id IN (SELECT id FROM old))
"""
_OLD_OUTPUTS = """
    SELECT count(*) FROM scheduler_runoutput o JOIN scheduler_run r ON r.id = o.run_id WHERE r.recorded_at < %(before)s
"""
_OLD_CLIENT_IDS = """
    SELECT count(*) FROM scheduler_job
     WHERE recorded_at >= %(since)s AND recorded_at < %(before)s AND client_id IS NOT NULL
"""


class Swept(NamedTuple):
    """What a look through some rows in the order they were recorded came to."""

    gone: int
    """How many went."""
    until: datetime
    """Of what was recorded before nothing is left. Where somebody holds something, it is no further than that."""
    more: bool
    """Further ones can be looked through at once."""


def delete_jobs(before: datetime, *, most: int) -> tuple[int, int, int, int]:
    """Delete jobs whose end was recorded before, the oldest first: how many jobs, runs, events and outputs went."""
    jobs, runs, events, outputs = _one_row(_DELETE_JOBS, before=before, most=most)
    return jobs, runs, events, outputs


def delete_outputs(since: datetime, before: datetime, *, most: int) -> Swept:
    """Delete the outputs of about so many runs, the oldest first."""
    return _through("scheduler_run", _DELETE_OUTPUTS, since, before, most)


def forget_client_ids(since: datetime, before: datetime, *, most: int) -> Swept:
    """Free the client ids of about so many jobs, the oldest first."""
    return _through("scheduler_job", _FORGET_CLIENT_IDS, since, before, most)


def delete_node_days(before: datetime) -> None:
    """Delete roll-ups by node and by pool of whole days before."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_NODE_DAYS, {"before": before})


def old_jobs(before: datetime) -> tuple[int, int, int]:
    """How many jobs, runs and events there are that `delete_jobs` would take in the end."""
    jobs, runs, events = _one_row(_OLD_JOBS, before=before)
    return jobs, runs, events


def old_outputs(before: datetime) -> int:
    """How many outputs there are of runs recorded before."""
    (count,) = _one_row(_OLD_OUTPUTS, before=before)
    return int(count)


def old_client_ids(since: datetime, before: datetime) -> int:
    """How many client ids there are of jobs recorded in a span."""
    (count,) = _one_row(_OLD_CLIENT_IDS, since=since, before=before)
    return int(count)


def _through(table: str, sql: str, since: datetime, before: datetime, most: int) -> Swept:
    if since >= before:
        return Swept(gone=0, until=since, more=False)
    (until,) = _one_row(_UNTIL.format(table=table), since=since, before=before, most=most)
    gone, held = _one_row(sql, since=since, until=until)
    return Swept(gone=gone, until=held or until, more=held is None and until < before)


def _one_row(sql: str, **parameters: Any) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: tuple[Any, ...] = cursor.fetchone()
        return row
