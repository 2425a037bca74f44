"""How many jobs of each queue are in each state: added up beforehand, with what has ended since and what has not."""

from scheduler.states import TERMINAL_JOB_STATES, JobState

ACTIVE = tuple(state for state in JobState if state not in TERMINAL_JOB_STATES)
_ROWS = """
    SELECT queue_id, state, count(*), max(state_changed_at), sum(extract(epoch FROM state_changed_at)::float8),
           count(ended_at), sum(extract(epoch FROM ended_at - submitted_at)::float8)
      FROM scheduler_job
     WHERE {condition} GROUP BY queue_id, state
"""
TOTALS = f"""
    SELECT t.*, seen.first_submitted, seen.last_submitted
      FROM (SELECT queue, state, sum(jobs) AS jobs, max(last_changed) AS last_changed,
                   sum(changed_seconds) AS changed_seconds, sum(ended) AS ended, sum(lasted_seconds) AS lasted_seconds
              FROM (SELECT queue, state, jobs, last_changed_at, changed_seconds::float8, jobs, lasted_seconds::float8
                      FROM scheduler_jobtotal
                 UNION ALL ({_ROWS.format(condition="recorded_at >= coalesce((SELECT counted_until FROM scheduler_historymark), 'epoch')")})
                 UNION ALL ({_ROWS.format(condition="state IN (" + ", ".join(f"'{state}'" for state in ACTIVE) + ")")})
                   ) AS part(queue, state, jobs, last_changed, changed_seconds, ended, lasted_seconds)
          GROUP BY queue, state HAVING sum(jobs) > 0) AS t
     CROSS JOIN LATERAL (SELECT min(submitted_at), max(submitted_at) FROM scheduler_job
                          WHERE queue_id = t.queue AND state = t.state) AS seen(first_submitted, last_submitted)
"""  # noqa: S608 - the words are ours
"""SQL of one row per queue and state. It takes no parameters."""
