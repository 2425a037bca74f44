"""Rows that lead to jobs: of an annotation, or runs of a node, of a category, or that failed alike. They know when their job was submitted.

By itself the database takes all jobs for about equally likely to be meant: it walks them until enough are found where
nearly none are, and asks about each where the rows could have told at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Self

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scheduler.filters import Condition, JobFilter, Match, Scope
from scheduler.models import Job, JobAnnotation, Run
from scheduler.models.annotations import LONGEST_VALUE
from scheduler.queries.failures import NO_CATEGORY
from scheduler.queries.keyset import Stretch
from scheduler.queries.meaning import jobs_where, some_runs_where

MOST = 20_000
"""Rows that are put in order by themselves; where there are more, jobs are found as soon by walking them."""
_MOST_ASKED = 3
"""Annotations of one filter that are looked for in this way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lead:
    """Where to begin."""

    rows: "QuerySet[Any]"
    """Each with `job` and `job_submitted_at`; perhaps several of one job."""
    others: JobFilter
    """What the filter says besides."""
    are_of_one_value: bool = False

    @classmethod
    def of(cls, wanted: JobFilter) -> Self | None:
        """Few rows, or those of one value; None for a filter that says nothing of the kind.

        One query for each annotation that is asked for, up to three, but where one alone is.
        """
        said = [condition for condition in wanted if _can_lead(condition)][:_MOST_ASKED]
        alone = len(wanted.conditions) == 1 and any(map(_is_one, said))
        first = said[0] if alone else _fewest(said)
        return cls._of_annotation(wanted, first, said) if first else cls._of_runs(wanted)

    @classmethod
    def _of_annotation(cls, wanted: JobFilter, said: Condition, among: Sequence[Condition]) -> Self:
        rows = _annotated(said)
        for condition in among:
            if condition != said and _is_one(condition):
                rows = rows.filter(Exists(_annotated(condition).filter(**_SAME_JOB)))
        is_whole = all(len(str(value)) < LONGEST_VALUE for value in said.values)
        others = _without(wanted, said) if is_whole else wanted
        return cls(rows=rows, others=others, are_of_one_value=_is_one(said))

    @classmethod
    def _of_runs(cls, wanted: JobFilter) -> Self | None:
        said = [each for each in wanted if each.scope is Scope.ANY and not each.negated]
        runs = some_runs_where(said) if any(map(_leads_by_runs, said)) else None
        if runs is not None:
            return cls(rows=Run.objects.filter(runs), others=_without(wanted, *said))
        return cls._of_last_runs(wanted)

    @classmethod
    def _of_last_runs(cls, wanted: JobFilter) -> Self | None:
        """What is said of the last run holds of some run; whether that is the last one its job is asked."""
        said = [each for each in wanted if each.scope is Scope.LAST and each.field == "fingerprint"]
        runs = (
            some_runs_where(said) if any(not each.negated and _leads_by_runs(each) for each in said) else None
        )
        return cls(rows=Run.objects.filter(runs), others=wanted) if runs is not None else None

    @property
    def jobs(self) -> Q:
        """Jobs that these rows lead to.

        Of one value no job has two rows, and the key of the rows says so where both of its ends are compared: the database
        may begin with them then and stop when it has enough.
        """
        if not self.are_of_one_value:
            return Q(pk__in=self.rows.values("job"))
        return Q(Exists(self.rows.filter(job=OuterRef("pk"), job_submitted_at=OuterRef("submitted_at"))))

    def first(self, jobs: "QuerySet[Job]", stretch: Stretch) -> "QuerySet[Job]":
        """Of ordered jobs of the others the first that these rows lead to, no more than the stretch is long."""
        rows = self.rows
        if stretch.start is not None:
            bound = "lte" if stretch.descending else "gte"
            rows = rows.filter(**{f"job_submitted_at__{bound}": stretch.start})
        if jobs.query.where:
            rows = rows.filter(Exists(jobs.order_by().filter(pk=OuterRef("job"))))
        keys = F("job_submitted_at"), F("job_id")
        order = [key.desc() if stretch.descending else key.asc() for key in keys]
        return jobs.filter(pk__in=rows.order_by(*order).values("job").distinct()[: stretch.number])


def _leads_by_runs(condition: Condition) -> bool:
    """Of a category there may be so many that jobs are found sooner among all that ever failed."""
    if condition.match is not Match.EQUALS or condition.field not in ("node", "fingerprint", "category"):
        return False
    if condition.field != "category":
        return _is_one(condition)
    names = {str(value).partition("/")[0] for value in condition.values}
    return NO_CATEGORY not in names and Run.objects.filter(category__in=names)[: MOST + 1].count() <= MOST


def _fewest(said: Sequence[Condition]) -> Condition | None:
    """The one with the fewest rows; where all have many, one whose rows are in the order of their jobs."""
    counted = [(_annotated(condition)[: MOST + 1].count(), condition) for condition in said]
    few = min((each for each in counted if each[0] <= MOST), key=lambda each: each[0], default=None)
    return few[1] if few else next(filter(_is_one, said), None)


_SAME_JOB = {name: OuterRef(name) for name in ("job_submitted_at", "job_id")}


def jobs_found(wanted: JobFilter) -> Q:
    """Jobs that the filter means, for any query of jobs, found by the rows that lead to them where there are any."""
    lead = Lead.of(wanted)
    return lead.jobs & jobs_where(lead.others) if lead else jobs_where(wanted)


def _can_lead(condition: Condition) -> bool:
    return condition.field == "annotation" and not condition.negated and condition.match in _OF_ROWS


def _is_one(condition: Condition) -> bool:
    return condition.match is Match.EQUALS and len(condition.values) == 1


def _annotated(condition: Condition) -> "QuerySet[JobAnnotation]":
    """Rows of the jobs that the condition means, and of those whose values are too long to stand there and begin alike."""
    rows = JobAnnotation.objects.filter(key=condition.key)
    values = [str(value)[:LONGEST_VALUE] for value in condition.values]
    match condition.match:
        case Match.EQUALS:
            return rows.filter(value__in=values)
        case Match.STARTS_WITH:
            return rows.filter(reduce(or_, (Q(value__startswith=value) for value in values)))
        case _:
            return rows


_OF_ROWS = (Match.EQUALS, Match.STARTS_WITH, Match.EXISTS)


def _without(wanted: JobFilter, *said: Condition) -> JobFilter:
    return JobFilter(tuple(condition for condition in wanted if condition not in said))
