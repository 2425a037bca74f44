"""What filters mean: the conditions of the filter language as conditions of the database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from django.db.models import Exists, OuterRef, Q, QuerySet

from policies.failures import Failure
from scheduler.filters import Condition, DecisionFilter, Filter, JobFilter, Match, RunFilter, Scope
from scheduler.models import Run
from scheduler.queries.columns import OF_DECISIONS, OF_JOBS, OF_LAST_RUNS, OF_RUNS, Column
from scheduler.queries.failures import REJECTED, RETURNED_TOO_OFTEN, returned_too_often
from scheduler.states import FAILED_RUN_STATES, JobState

_OF_FAILURES = ("category", "subcategory")
"""What a job failed of, which its own end may say as well."""
_OF_THE_FAILED_RUN = ("error", "reason", "fingerprint", "verdict", "policy", "policyVersion", "ruleIndex")


def jobs_where(wanted: JobFilter) -> Q:
    """Jobs that the filter means, for any query of jobs."""
    found = _all_hold(OF_JOBS, (each for each in wanted if each.scope is Scope.OWN))
    found &= _all_hold(OF_LAST_RUNS, (each for each in wanted if _is_known(each)))
    for runs, asked in _by_runs(wanted):
        found &= _asked_of(runs, asked)
    return found


def runs_where(wanted: RunFilter) -> Q:
    """Runs that the filter means, for any query of runs."""
    return _all_hold(OF_RUNS, wanted)


def decisions_where(wanted: DecisionFilter) -> Q:
    """Decisions that the filter means, for any query of decisions."""
    return _all_hold(OF_DECISIONS, wanted)


def _all_hold(columns: Mapping[str, Column], conditions: Filter | Iterable[Condition]) -> Q:
    found = Q()
    for condition in conditions:
        holds = columns[condition.field].holds(condition)
        found &= ~holds if condition.negated else holds
    return found


def _is_known(condition: Condition) -> bool:
    """The job itself says it of its last run."""
    return condition.scope is Scope.LAST and condition.field in OF_LAST_RUNS


type _Runs = Callable[[Sequence[Condition]], Q]
"""Jobs with a run, of some sort of theirs, of which all these conditions hold."""


def _by_runs(wanted: JobFilter) -> Iterable[tuple[_Runs, list[Condition]]]:
    """The conditions on runs, by the runs they are about."""
    last = [each for each in wanted if each.scope is Scope.LAST and not _is_known(each)]
    yield _some_run, [each for each in wanted if each.scope is Scope.ANY]
    yield _last_run, [each for each in last if each.field not in _OF_THE_FAILED_RUN]
    yield _last_failed_run, [each for each in last if each.field in _OF_THE_FAILED_RUN]


def _asked_of(runs: _Runs, asked: Sequence[Condition]) -> Q:
    """What is affirmed holds of one and the same run; each thing denied, of no run."""
    affirmed = [condition for condition in asked if not condition.negated]
    found = runs(affirmed) if affirmed else Q()
    for condition in asked:
        if condition.negated:
            found &= ~runs([replace(condition, negated=False)])
    return found


def some_runs_where(asked: Sequence[Condition]) -> Q | None:
    """Runs of which all these conditions hold: their jobs, and no others, are meant by them.

    None where a job's own end does as well as a run.
    """
    failures = [condition for condition in asked if condition.field in _OF_FAILURES]
    if failures and (_is_of(RETURNED_TOO_OFTEN, failures) or _is_of(REJECTED, failures)):
        return None
    return _all_hold(OF_RUNS, asked) & (Q(state__in=FAILED_RUN_STATES) if failures else Q())


_FAILED_ONCE = Q(last_category__isnull=False)
"""Says nothing new of a job with a failure, and spares a look at the runs of all others."""


def _some_run(asked: Sequence[Condition]) -> Q:
    failures = [condition for condition in asked if condition.field in _OF_FAILURES]
    if not failures:
        return Q(Exists(_runs_with(asked)))
    found = Q(Exists(_runs_with(asked).filter(state__in=FAILED_RUN_STATES)))
    if failures == asked and _is_of(REJECTED, failures):
        found |= Q(state=JobState.REJECTED)
    if _is_of(RETURNED_TOO_OFTEN, failures):
        others = [condition for condition in asked if condition not in failures]
        found |= returned_too_often(_all_hold(OF_RUNS, others))
    return found & _FAILED_ONCE


def _last_run(asked: Sequence[Condition]) -> Q:
    return Q(Exists(_runs_with(asked).filter(number=OuterRef("run_count"))))


def _last_failed_run(asked: Sequence[Condition]) -> Q:
    later = Run.objects.filter(
        job=OuterRef("job"), number__gt=OuterRef("number"), state__in=FAILED_RUN_STATES
    )
    return Q(Exists(_runs_with(asked).filter(~Exists(later), state__in=FAILED_RUN_STATES)))


def _runs_with(asked: Sequence[Condition]) -> QuerySet[Run]:
    return Run.objects.filter(_all_hold(OF_RUNS, asked), job=OuterRef("pk"))


def _is_of(failure: Failure, asked: Iterable[Condition]) -> bool:
    """Whether all that is asked of a failure, taken without negations, is true of this one."""
    return all(_is_true(failure, condition) for condition in asked)


def _is_true(failure: Failure, condition: Condition) -> bool:
    whole = f"{failure.category}/{failure.subcategory}"
    text = failure.category if condition.field == "category" else failure.subcategory
    values = [str(value) for value in condition.values]
    match condition.match:
        case Match.EXISTS:
            return True
        case Match.STARTS_WITH:
            return text.startswith(tuple(values))
        case Match.CONTAINS:
            return any(value in text for value in values)
        case _:
            return text in values or (condition.field == "category" and whole in values)
