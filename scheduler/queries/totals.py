"""How many jobs of each queue are in each state: added up beforehand, with what has ended since and what has not."""

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
TOTALS = f"""
    SELECT t.*, seen.first_submitted, seen.last_submitted
      FROM (SELECT queue, state, sum(jobs) AS jobs, max(last_changed) AS last_changed,
                   sum(changed_seconds) AS changed_seconds, sum(ended) AS ended, sum(lasted_seconds) AS lasted_seconds
              FROM ({_COUNTED} UNION ALL ({_ENDED_SINCE}) UNION ALL ({_ACTIVE}))
                   AS part(queue, state, jobs, last_changed, changed_seconds, ended, lasted_seconds)
          GROUP BY queue, state HAVING sum(jobs) > 0) AS t
     CROSS JOIN LATERAL (SELECT min(submitted_at), max(submitted_at) FROM scheduler_job
                          WHERE queue_id = t.queue AND state = t.state) AS seen(first_submitted, last_submitted)
"""  # noqa: S608 - the words are ours
"""SQL of one row per queue and state. It takes no parameters."""
