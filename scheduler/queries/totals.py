"""How many jobs of each queue are in each state: added up beforehand, with what has ended since and what has not."""

from collections.abc import Collection

# The index of active jobs alone tells everything about them that is asked here.
_ACTIVE = """
    SELECT queue_id, state, count(*), max(state_changed_at), sum(date_part('epoch', state_changed_at)),
           0, NULL::float8
      FROM scheduler_job WHERE ended_at IS NULL GROUP BY queue_id, state
"""
# With two ends nobody knows beforehand the planner takes it for a short span, as it is.
_ENDED_SINCE = """
    SELECT queue_id, state, count(*), max(state_changed_at), sum(date_part('epoch', state_changed_at)),
           count(*), sum(date_part('epoch', ended_at - submitted_at))
      FROM scheduler_job
     WHERE recorded_at >= coalesce((SELECT counted_until FROM scheduler_historymark), 'epoch')
       AND recorded_at < (SELECT 'infinity'::timestamptz)
  GROUP BY queue_id, state
"""
_COUNTED = """
    SELECT queue, state, jobs, last_changed_at, changed_seconds::float8, jobs, lasted_seconds::float8
      FROM scheduler_jobtotal
"""
_TOTALS = f"""
    WITH total AS MATERIALIZED (
        SELECT queue, state, sum(jobs) AS jobs, max(last_changed) AS last_changed,
               sum(changed_seconds) AS changed_seconds, sum(ended) AS ended, sum(lasted_seconds) AS lasted_seconds
          FROM ({_COUNTED} UNION ALL ({_ENDED_SINCE}) UNION ALL ({_ACTIVE}))
               AS part(queue, state, jobs, last_changed, changed_seconds, ended, lasted_seconds)
      GROUP BY queue, state HAVING sum(jobs) > 0
    ), seen AS MATERIALIZED (
        SELECT * FROM (SELECT DISTINCT {{by}} FROM total) AS known
         CROSS JOIN LATERAL (SELECT min(submitted_at) AS first_submitted, max(submitted_at) AS last_submitted
                               FROM scheduler_job WHERE {{same}}) AS submitted
    )
    SELECT * FROM total JOIN seen USING ({{by}})
"""  # noqa: S608 - the words are ours
_SAME = {"queue": "queue_id = known.queue", "state": "state = known.state"}


def totals_by(by: Collection[str]) -> str:
    """SQL of one row per queue and state, to be grouped by one of them or both. It takes no parameters.

    The first and the last submission are those of the whole group, looked up once for each.
    """
    return _TOTALS.format(by=", ".join(by), same=" AND ".join(_SAME[name] for name in by))
