"""The list of jobs: which they are, how far they have come, and what ended them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from lookout.filters import job_filter
from lookout.pages.bar import BESIDES, RELATIONS, chips, filters_of, jobs_address, tally, with_added
from lookout.pages.life import asks_of_list
from lookout.pages.shell import PageRequest, page, show
from policies.quantity import rounded_bytes
from scheduler.errors import Invalid, NotFound
from scheduler.filters import JOBS, FilterInvalid, FilterProblem, JobFilter, pairs_of
from scheduler.models import Job
from scheduler.models.clock import database_now
from scheduler.queries.jobs import (
    JobPage,
    JobRow,
    find_job,
    job_page,
    state_counts,
)
from scheduler.queries.names import queue_names
from scheduler.queries.newer import Newer, jobs_newer_than, place_in_list
from scheduler.states import JobState, RunState

PAGE_SIZE = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One job as the list shows it."""

    row: JobRow
    job_set_address: str
    retries: tuple[int, int] | None
    """Used, of the limit; None before any decision."""
    ran: timedelta | None
    memory_before: str
    memory_now: str

    @property
    def job(self) -> Job:
        return self.row.job

    @property
    def run_states(self) -> list[str]:
        return [run.state for run in self.row.runs]

    @property
    def awaits_verdict(self) -> bool:
        last = self.row.last_run
        return last is not None and last.ended_at is not None and last.settled_at is None

    @property
    def no_run_came(self) -> bool:
        """It failed although a retry was granted: leases were returned until there were too many."""
        last = self.row.last_run
        return (
            self.job.state == JobState.FAILED and last is not None and last.state == RunState.LEASE_RETURNED
        )

    @property
    def retries_spent(self) -> bool:
        return self.retries is not None and self.retries[0] >= self.retries[1] > 0


@require_safe
@page
def jobs(request: PageRequest) -> HttpResponse:
    """The jobs of the filter in the address."""
    query = request.GET
    if query.get("filter") and (query.get("value") or "?" in query.get("match", "")):
        return redirect(jobs_address(with_added(query)))
    try:
        wanted = job_filter(query, besides=BESIDES)
        found = _found(request, wanted)
    except (FilterInvalid, Invalid) as error:
        return _show(request, JobFilter(), {"problems": _problems(error), "tally": []}, status=400)
    counts = state_counts(wanted)
    now = database_now()
    return _show(
        request,
        wanted,
        {
            "now": now,
            "rows": [_line(row, now) for row in found.page.rows],
            "tally": tally(wanted, counts),
            "summary": _summary(wanted, counts),
            "page_words": _page_words(found, wanted, counts),
            "older": jobs_address(filters_of(query), cursor=found.page.next) if found.page.next else "",
            "newer": _neweraddress(query, found),
            "came_in": found.came_in,
            "empty": _empty(wanted, counts),
            "first": found.page.rows[0].job.id if found.page.rows else "",
            "asks": asks_of_list(query, request.actor) if found.page.rows else [],
        },
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    page: JobPage
    above: Newer | None
    """What is above the page; None on the first."""
    came_in: int = 0
    """Newer jobs held back, because the reader has scrolled down."""


def _found(request: PageRequest, wanted: JobFilter) -> _Found:
    cursor = request.GET.get("cursor", "")
    held = _held_back(request, wanted) if not cursor else None
    if held is not None and held.at_row:
        return _Found(
            page=job_page(wanted, limit=PAGE_SIZE, cursor=held.at_row), above=None, came_in=held.count
        )
    page_found = job_page(wanted, limit=PAGE_SIZE, cursor=cursor)
    if not cursor or not page_found.rows:
        return _Found(page=page_found, above=None)
    first = page_found.rows[0].job
    return _Found(page=page_found, above=jobs_newer_than(first, wanted, limit=PAGE_SIZE))


def _held_back(request: PageRequest, wanted: JobFilter) -> Newer | None:
    """What is newer than the first row a scrolled page shows, when it says which that is."""
    first = request.headers.get("Tack-First", "")
    if not first:
        return None
    try:
        return jobs_newer_than(find_job(first), wanted, limit=PAGE_SIZE)
    except NotFound:
        return None


def _show(
    request: PageRequest, wanted: JobFilter, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    shared = {
        "chips": chips(wanted),
        "kept": filters_of(request.GET),
        "fields": list(JOBS.fields.values()),
        "relations": RELATIONS,
        "adding": request.GET.get("filter", ""),
        "states": list(JobState),
        "queue_names": queue_names,
    }
    return show(request, "jobs/jobs.html", {**shared, **context}, place="jobs", part="live", status=status)


def _line(row: JobRow, now: datetime) -> Line:
    job, last, decision = row.job, row.last_run, row.last_decision
    memory = job.memory_limit_bytes or job.memory_request_bytes
    before = job.submitted_memory_bytes
    began = last.started_at if last else None
    return Line(
        row=row,
        job_set_address=jobs_address([("queue", job.queue_id), ("jobSet", job.job_set.name)]),
        retries=(decision.policy_used_after, decision.policy_limit) if decision else None,
        ran=((last.ended_at or now) - began) if last and began else None,
        memory_before=rounded_bytes(before) if before else "",
        memory_now=rounded_bytes(memory) if memory else "",
    )


def _summary(wanted: JobFilter, counts: dict[JobState, int]) -> str:
    total = sum(counts.values())
    queues = wanted.values("queue")
    of = f" of {', '.join(map(str, queues))}" if queues else ""
    open_ones = sum(count for state, count in counts.items() if not state.is_terminal)
    return f"{total:,}{of}, {open_ones:,} not ended, {counts[JobState.FAILED]:,} ended failed"


def _page_words(found: _Found, wanted: JobFilter, counts: dict[JobState, int]) -> str:
    total = sum(count for state, count in counts.items() if _is_meant(wanted, state))
    rows = found.page.rows
    if found.above is None or not rows:
        return f"{len(rows):,} of {total:,} jobs, newest first"
    first = place_in_list(rows[0].job, wanted)
    return f"{first:,} to {first + len(rows) - 1:,} of {total:,} jobs, newest first"


def _is_meant(wanted: JobFilter, state: JobState) -> bool:
    return all((state in each.values) != each.negated for each in wanted if each.name == "state")


def _neweraddress(query: QueryDict, found: _Found) -> str:
    if found.above is None:
        return ""
    return jobs_address(
        filters_of(query), **({"cursor": found.above.page_before} if found.above.page_before else {})
    )


def _empty(wanted: JobFilter, counts: dict[JobState, int]) -> dict[str, str]:
    if not wanted:
        return {
            "head": "No job yet",
            "text": "Submit one: ./tack submit job.yaml. It appears here at once.",
        }
    hidden = sum(counts.values())
    others = jobs_address(pairs_of(wanted.without("state"))) if hidden else reverse("jobs")
    text = f"The state filter hides {hidden:,} jobs." if hidden else "The filters match nothing."
    return {
        "head": "No job like this",
        "text": text,
        "way_on": others,
        "way_on_words": "Show every state" if hidden else "Show all jobs",
    }


def _problems(error: FilterInvalid | Invalid) -> Sequence[FilterProblem]:
    if isinstance(error, FilterInvalid):
        return error.problems
    return [FilterProblem(field=error.path, message=str(error))]
