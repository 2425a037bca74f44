"""Jobs of few job sets: the newest of each are looked up by themselves, then the newest of all of them are taken.

By itself the database walks all jobs in their order, or reads all of each job set. That is long where the job sets that are
meant are old, or large.
"""

from collections.abc import Callable, Mapping, Sequence

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, Func, OuterRef, QuerySet

from scheduler.filters import Condition, JobFilter, Match, Scope
from scheduler.models import Job, JobSet
from scheduler.queries.columns import Column

FEW = 100
"""Job sets that are walked one by one; the jobs of more are dense enough among all jobs."""
MOST_LOOKED_AT = 10_000
"""Jobs that may be looked up of all of them together."""

_NAMES: Mapping[str, Column] = {"queue": Column(path="queue__name"), "jobSet": Column(path="name")}
_PARTS = (Match.EQUALS, Match.STARTS_WITH, Match.CONTAINS)

type Walk = Callable[[QuerySet[Job], int], QuerySet[Job]]
"""Ordered jobs, of which so many are wanted: the same jobs, found in another way."""


def walk_of(wanted: JobFilter) -> Walk | None:
    """How to find the newest jobs of a filter that means few job sets; None for any other. One query, or none."""
    if not any(_narrows(condition) for condition in wanted):
        return None
    found = JobSet.objects.all()
    for condition in wanted:
        found = _narrowed(found, condition)
    ids = list(found.values_list("id", flat=True)[: FEW + 1])
    return _one_by_one(ids) if len(ids) <= FEW else None


def _narrows(condition: Condition) -> bool:
    return _is_active(condition) or (condition.field == "jobSet" and _is_named(condition))


def _narrowed(found: QuerySet[JobSet], condition: Condition) -> QuerySet[JobSet]:
    if _is_active(condition):
        return found.filter(Exists(Job.objects.filter(job_set=OuterRef("pk"), ended_at__isnull=True)))
    if condition.field in _NAMES and _is_named(condition):
        return found.filter(_NAMES[condition.field].holds(condition))
    return found


def _is_active(condition: Condition) -> bool:
    return condition.field == "activeJobSet" and condition.values == (True,) and not condition.negated


def _is_named(condition: Condition) -> bool:
    return condition.scope is Scope.OWN and condition.match in _PARTS and not condition.negated


def _one_by_one(ids: Sequence[int]) -> Walk:
    def walk(jobs: QuerySet[Job], number: int) -> QuerySet[Job]:
        if number * len(ids) > MOST_LOOKED_AT:
            return jobs
        of_one = jobs.filter(job_set=OuterRef("pk")).values("pk")[:number]
        first = Func(ArraySubquery(of_one), function="unnest")
        return jobs.filter(pk__in=JobSet.objects.filter(pk__in=ids).values_list(first))

    return walk
