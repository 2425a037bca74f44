"""What retries came to: by policy and rule, how many were granted, how many helped, and what the failures cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import EmptyResultSet

from policies.decision import Verdict
from scheduler.filters import DecisionFilter
from scheduler.models import Decision
from scheduler.models.rollups import DECISIONS_BY_DAY, OUTCOMES_BY_DAY
from scheduler.queries.meaning import decisions_where
from scheduler.queries.patience import within
from scheduler.queries.rollups import Span, rolled_up, rows_of
from scheduler.states import RunState

NARROW = (
    "So many decisions take too long to look through. Ask for a shorter time with since and until, or without a "
    "filter, which is added up beforehand."
)


@dataclass(kw_only=True, slots=True)
class RuleRetries:
    """What one rule of a policy, or its default, decided in a span; and what became of the retries in that span.

    A retry counts when it is granted, and what came of it when that is recorded: over a short span there may be
    more successes than retries. A retry whose job was cancelled or preempted meanwhile comes to nothing.
    """

    policy: str
    rule: int | None
    """From 0; None for what no rule matched."""
    verdicts: dict[Verdict, int] = field(default_factory=dict)
    """Decisions by verdict."""
    succeeded_after: dict[int, int] = field(default_factory=dict)
    """Jobs that succeeded with the run a retry gave them, by how many retries they had had."""
    failed_again: int = 0
    cancelled: int = 0
    failed_core_seconds: float = 0.0
    """Spent by the failed runs that were decided about."""

    @property
    def granted(self) -> int:
        """Retries."""
        return self.verdicts.get(Verdict.RETRY, 0)

    @property
    def succeeded(self) -> int:
        """Retries that helped."""
        return sum(self.succeeded_after.values())


def retry_statistics(wanted: DecisionFilter, span: Span) -> tuple[RuleRetries, ...]:
    """By policy and rule, in that order, in one query. Without a filter the answer comes from roll-ups.

    Raises TooMuchAsked when the database cannot answer in time.
    """
    with within(narrow=NARROW, parallel=True):
        rows = _rows(wanted, span)
    found: dict[tuple[str, int | None], RuleRetries] = {}
    for policy, rule, verdict, outcome, after, times, core_seconds in rows:
        retries = found.setdefault((policy, rule), RuleRetries(policy=policy, rule=rule))
        if outcome:
            _add_outcome(retries, RunState(outcome), after, int(times))
        else:
            retries.verdicts[Verdict(verdict)] = int(times)
            retries.failed_core_seconds += core_seconds
    return tuple(found.values())


_SUMMED = """
    SELECT policy, rule, verdict, outcome, after, sum(times), sum(core_seconds)
      FROM found GROUP BY 1, 2, 3, 4, 5 ORDER BY policy, rule NULLS LAST, verdict, outcome, after
"""
_FAMILIES = (DECISIONS_BY_DAY, OUTCOMES_BY_DAY)


def _rows(wanted: DecisionFilter, span: Span) -> Sequence[tuple[Any, ...]]:
    if not wanted:
        return rows_of(f"WITH {rolled_up(*_FAMILIES)} {_SUMMED}", span.parameters)
    chosen = Decision.objects.filter(decisions_where(wanted)).order_by().values("run_id")
    try:
        sql, parameters = chosen.query.sql_with_params()
    except EmptyResultSet:  # the filter contradicts itself
        return []
    parts = [f"({family.counted('%s', '%s', besides=f'd.run_id IN ({sql})')})" for family in _FAMILIES]
    given = [*span.parameters.values(), *parameters]
    return rows_of(f"WITH found AS ({' UNION ALL '.join(parts)}) {_SUMMED}", given * len(parts))


def _add_outcome(retries: RuleRetries, outcome: RunState, after: int, times: int) -> None:
    if outcome is RunState.SUCCEEDED:
        retries.succeeded_after[after] = retries.succeeded_after.get(after, 0) + times
    elif outcome is RunState.CANCELLED:
        retries.cancelled += times
    else:
        retries.failed_again += times
