"""Jobs newer than those of a page: what the way back leads to, and what came in since."""

from dataclasses import dataclass

from django.db.models import Q

from scheduler.filters import JobFilter
from scheduler.models import Job
from scheduler.queries.jobs import find_jobs
from scheduler.queries.pages import cursor_at

MOST_COUNTED = 100
"""Newer jobs are counted up to here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Newer:
    """The jobs of a filter above a row."""

    count: int
    """At most MOST_COUNTED."""
    page_before: str
    """The cursor of the page that ends just above the row; empty when that is the first page."""
    at_row: str
    """The cursor of the page that begins with the row; empty when nothing is above it."""


def jobs_newer_than(job: Job, wanted: JobFilter, *, limit: int) -> Newer:
    """What is above a job in the list of a filter, in one query. `limit` is the size of a page."""
    nearest_first = find_jobs(wanted).filter(_above(job)).order_by("submitted_at", "id")
    places = list(nearest_first.values_list("submitted_at", "id")[: max(limit, MOST_COUNTED) + 1])
    return Newer(
        count=min(len(places), MOST_COUNTED),
        page_before=cursor_at(*places[limit]) if len(places) > limit else "",
        at_row=cursor_at(*places[0]) if places else "",
    )


def place_in_list(job: Job, wanted: JobFilter) -> int:
    """Where a job stands in the list of a filter, counted from 1, in one query."""
    return find_jobs(wanted).filter(_above(job)).count() + 1


def _above(job: Job) -> Q:
    return Q(submitted_at__gt=job.submitted_at) | Q(submitted_at=job.submitted_at, id__gt=job.id)
