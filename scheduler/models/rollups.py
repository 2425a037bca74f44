"""Roll-ups: what each family of them counts, and the SQL that adds it up, of closed hours and of the live rest alike.

One SELECT per family says what is counted of a span of recording. Closing an hour writes what it finds, reading adds
what it finds of the time that is not closed, and a recount compares it with what was written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection

from scheduler.states import FAILED_RUN_STATES, RunState

OUTCOMES = (RunState.SUCCEEDED, RunState.FAILED, RunState.LEASE_EXPIRED, RunState.CANCELLED)
"""Ends of a run that say what came of a retry: a lease given back and a preemption do not."""


def _words(states: tuple[RunState, ...]) -> str:
    return ", ".join(f"'{state}'" for state in states)


@dataclass(frozen=True, kw_only=True, slots=True)
class RollUp:
    """A family: its table, and the SELECT that counts from `{begin}` until `{end}`, as SQL of two moments."""

    table: str
    unit: str
    """Of its buckets: hour or day."""
    keys: Mapping[str, str]
    """Column of the table → SQL of what is counted."""
    measures: Mapping[str, str]
    """Column of the table → SQL of what one row of the source adds to it."""
    source: str
    clock: str
    """The time of recording, of the source."""
    own: str = "true"
    """Which rows of the table are the family's."""
    by_hour: "RollUp | None" = None
    """Of a family by day: the same by the hour, for where a span begins or ends within a day."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Bucket, keys and measures."""
        return (self.unit, *self.keys, *self.measures)

    @property
    def kept(self) -> str:
        """SQL of the family's rows in the table, to be narrowed with AND."""
        return f"SELECT {', '.join(self.columns)} FROM {self.table} WHERE {self.own}"  # noqa: S608

    def counted(self, begin: str, end: str, *, besides: str = "true") -> str:
        """SQL of what was recorded in a span, by bucket and keys; only what `besides` holds of."""
        sums = {name: f"sum({sql})" for name, sql in self.measures.items()}
        groups = ", ".join(str(number) for number in range(1, len(self.keys) + 2))
        return f"{self._recorded(sums, begin, end, besides)} GROUP BY {groups}"

    def each(self, begin: str, end: str, *, besides: str = "true") -> str:
        """The same one by one, for statements that add up themselves: to group first takes half of the time."""
        return self._recorded(self.measures, begin, end, besides)

    def _recorded(self, measures: Mapping[str, str], begin: str, end: str, besides: str) -> str:
        columns = {self.unit: self._bucket, **self.keys, **measures}
        told = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return (
            f"SELECT {told} FROM {self.source}"  # noqa: S608 - the names stand below
            f" AND {self.clock} >= {begin} AND {self.clock} < {end} AND {besides}"
        )

    def add(self, begin: datetime, end: datetime) -> None:
        """Add what was recorded in a span to the table. Each span once."""
        sums = ", ".join(f"{name} = old.{name} + excluded.{name}" for name in self.measures)
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {self.table} AS old ({', '.join(self.columns)}) "
                f"{self.counted('%(begin)s', '%(end)s')} "
                f"ON CONFLICT ({', '.join((self.unit, *self.keys))}) DO UPDATE SET {sums}",
                {"begin": begin, "end": end},
            )

    @property
    def _bucket(self) -> str:
        return f"date_trunc('{self.unit}', {self.clock}, 'UTC')"


_FAILED = f"scheduler_run r WHERE r.state IN ({_words(FAILED_RUN_STATES)})"
_FAILURES = {"failures": "1", "core_seconds": "r.core_seconds"}
# The run before is the last that ended for good: what was decided about it made this one.
_AFTER_RETRIES = f"""
    scheduler_run r CROSS JOIN LATERAL (
        SELECT p.id FROM scheduler_run p
         WHERE p.job_id = r.job_id AND p.number < r.number AND p.state IN ({_words(OUTCOMES)})
      ORDER BY p.number DESC LIMIT 1) AS before
    JOIN scheduler_decision d ON d.run_id = before.id AND d.verdict = 'retry'
   WHERE r.number > 1 AND r.state IN ({_words(OUTCOMES)})
"""  # noqa: S608
_OF_DECISION = {"policy": "d.policy_name", "rule": "d.rule_index", "verdict": "d.verdict"}
_TIMES = {"times": "1", "core_seconds": "r.core_seconds"}

FAILURES_BY_HOUR = RollUp(
    table="scheduler_failurehour", unit="hour", keys={"queue": "r.queue_id", "category": "r.category"},
    measures=_FAILURES, source=_FAILED, clock="r.recorded_at",
)  # fmt: skip
FAILURES_BY_DAY = RollUp(
    table="scheduler_failureday", unit="day",
    keys={"category": "r.category", "subcategory": "r.subcategory"},
    measures=_FAILURES, source=_FAILED, clock="r.recorded_at",
)  # fmt: skip
FAILURES_BY_NODE = RollUp(
    table="scheduler_nodefailureday", unit="day",
    keys={"pool": "r.pool", "executor": "r.executor_id", "node": "r.node", "category": "r.category"},
    measures=_FAILURES, source=_FAILED, clock="r.recorded_at",
)  # fmt: skip
TOTALS_BY_NODE = RollUp(
    table="scheduler_nodedaytotal", unit="day",
    keys={"pool": "r.pool", "executor": "r.executor_id", "node": "r.node"},
    measures=_FAILURES, source=_FAILED, clock="r.recorded_at",
)  # fmt: skip
FAILURES_BY_POOL = RollUp(
    table="scheduler_poolfailureday", unit="day", keys={"pool": "r.pool", "category": "r.category"},
    measures=_FAILURES, source=_FAILED, clock="r.recorded_at",
)  # fmt: skip
DECISIONS_BY_HOUR = RollUp(
    table="scheduler_retryhour", unit="hour", keys={**_OF_DECISION, "outcome": "''", "after": "0"},
    measures=_TIMES, source="scheduler_decision d JOIN scheduler_run r ON r.id = d.run_id WHERE true",
    clock="d.decided_at", own="outcome = ''",
)  # fmt: skip
OUTCOMES_BY_HOUR = RollUp(
    table="scheduler_retryhour", unit="hour",
    keys={**_OF_DECISION, "outcome": "r.state", "after": "d.global_used_after"},
    measures=_TIMES, source=_AFTER_RETRIES, clock="r.recorded_at", own="outcome <> ''",
)  # fmt: skip


def _by_day(family: RollUp, table: str) -> RollUp:
    return replace(family, table=table, unit="day", by_hour=family)


FAILURES_BY_QUEUE = _by_day(FAILURES_BY_HOUR, "scheduler_queuefailureday")
DECISIONS_BY_DAY = _by_day(DECISIONS_BY_HOUR, "scheduler_retryday")
OUTCOMES_BY_DAY = _by_day(OUTCOMES_BY_HOUR, "scheduler_retryday")
FAMILIES = (
    FAILURES_BY_HOUR, FAILURES_BY_QUEUE, FAILURES_BY_DAY, FAILURES_BY_NODE, TOTALS_BY_NODE,
    FAILURES_BY_POOL, DECISIONS_BY_HOUR, DECISIONS_BY_DAY, OUTCOMES_BY_HOUR, OUTCOMES_BY_DAY,
)  # fmt: skip

_NEXT = """
    SELECT least((SELECT min(recorded_at) FROM scheduler_run WHERE recorded_at >= %(since)s),
                 (SELECT min(decided_at) FROM scheduler_decision WHERE decided_at >= %(since)s))
"""


def next_recorded(since: datetime) -> datetime | None:
    """When the first run or decision was recorded from this moment on."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"since": since})
        (moment,) = cursor.fetchone()
    assert moment is None or isinstance(moment, datetime)
    return moment


# As many jobs at once as are counted in a fraction of a second: the first time there may be years of them.
_COUNT_JOBS = """
    WITH span AS MATERIALIZED (
        SELECT coalesce((SELECT recorded_at FROM scheduler_job
                          WHERE recorded_at > %(since)s AND recorded_at < %(until)s
                       ORDER BY recorded_at OFFSET %(most)s LIMIT 1), %(until)s) AS until
    ), added AS (
        INSERT INTO scheduler_jobtotal AS old
               (queue, state, jobs, last_changed_at, changed_seconds, lasted_seconds)
        SELECT queue_id, state, count(*), max(state_changed_at), sum(extract(epoch FROM state_changed_at)),
               sum(extract(epoch FROM ended_at - submitted_at))
          FROM scheduler_job
         WHERE recorded_at >= %(since)s AND recorded_at < (SELECT until FROM span) GROUP BY queue_id, state
            ON CONFLICT (queue, state) DO UPDATE
           SET jobs = old.jobs + excluded.jobs,
               last_changed_at = greatest(old.last_changed_at, excluded.last_changed_at),
               changed_seconds = old.changed_seconds + excluded.changed_seconds,
               lasted_seconds = old.lasted_seconds + excluded.lasted_seconds
    )
    SELECT until FROM span
"""


def count_jobs(since: datetime, until: datetime, *, most: int) -> datetime:
    """Add the jobs whose end was recorded from `since` on to the totals, about `most` of them; until when."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_JOBS, {"since": since, "until": until, "most": most})
        (reached,) = cursor.fetchone()
    assert isinstance(reached, datetime)
    return reached
