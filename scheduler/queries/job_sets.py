"""Jobs of few job sets: the newest of each are looked up by themselves, then the newest of all of them are taken.

By itself the database walks all jobs in their order, or reads all of each job set. That is long where the job sets that are
meant are old, or large.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, Func, OuterRef, QuerySet

from scheduler.filters import Condition, JobFilter, Match, Scope
from scheduler.models import Job, JobSet
from scheduler.queries.columns import Column
from scheduler.queries.keyset import Stretch

FEW = 100
"""Job sets that are walked one by one; the jobs of more are dense enough among all jobs."""
MOST_LOOKED_AT = 10_000
"""Jobs that may be looked up of all of them together."""

_NAMES: Mapping[str, Column] = {"queue": Column(path="queue__name"), "jobSet": Column(path="name")}
_ACTIVE = Exists(Job.objects.filter(queue=OuterRef("queue"), job_set=OuterRef("pk"), ended_at__isnull=True))
_PARTS = (Match.EQUALS, Match.STARTS_WITH, Match.CONTAINS)


@dataclass(frozen=True, kw_only=True, slots=True)
class FewJobSets:
    """The job sets that a filter of jobs means."""

    ids: Sequence[int]
    others: JobFilter
    """What the filter says besides."""

    @classmethod
    def of(cls, wanted: JobFilter) -> Self | None:
        """None for a filter that says nothing of job sets, or means many. One query, or none."""
        said = [condition for condition in wanted if _is_active(condition) or _is_named(condition)]
        if all(condition.field == "queue" for condition in said):
            return None
        found = JobSet.objects.all()
        for condition in said:
            found = found.filter(
                _ACTIVE if _is_active(condition) else _NAMES[condition.field].holds(condition)
            )
        ids = list(found.values_list("id", flat=True)[: FEW + 1])
        others = JobFilter(tuple(condition for condition in wanted if condition not in said))
        return cls(ids=ids, others=others) if len(ids) <= FEW else None

    def first(self, jobs: QuerySet[Job], stretch: Stretch) -> QuerySet[Job]:
        """Of ordered jobs those of the job sets: of each job set no more are looked at than the stretch is long."""
        number = stretch.number
        if number * len(self.ids) > MOST_LOOKED_AT:
            return jobs.filter(job_set__in=self.ids)
        of_one = jobs.filter(job_set=OuterRef("pk")).values("pk")[:number]
        first = Func(ArraySubquery(of_one), function="unnest")
        return jobs.filter(pk__in=JobSet.objects.filter(pk__in=self.ids).values_list(first))


def _is_active(condition: Condition) -> bool:
    return condition.field == "activeJobSet" and condition.values == (True,) and not condition.negated


def _is_named(condition: Condition) -> bool:
    plain = condition.scope is Scope.OWN and condition.match in _PARTS and not condition.negated
    return plain and condition.field in _NAMES
