"""The list of jobs: which they are, how far they have come, and what ended them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from lookout.filters import address_of, job_filter
from lookout.pages.adding import GROUPS, adding_of
from lookout.pages.bar import (
    BESIDES,
    chips,
    filters_of,
    jobs_address,
    look_of,
    read_alone,
    tally,
    with_added,
)
from lookout.pages.found import Found, found_of
from lookout.pages.headings import (
    CHOICES,
    chosen_as,
    columns_of,
    headings,
    least,
    order_in_words,
    usual_columns,
)
from lookout.pages.job_lines import line_of
from lookout.pages.job_words import empty, missing_queue, page_words, summary
from lookout.pages.life import asks_of_list
from lookout.pages.shell import PageRequest, page, show
from scheduler.errors import Invalid, TooMuchAsked
from scheduler.filters import (
    JOBS,
    FilterInvalid,
    FilterProblem,
    JobFilter,
    Order,
    Pair,
    order_of,
    pairs_of,
)
from scheduler.filters.orders import NEWEST_JOBS
from scheduler.models.clock import database_now
from scheduler.queries.jobs import StateCounts, state_counts
from scheduler.queries.listings import NARROW, list_jobs
from scheduler.queries.names import queue_names
from scheduler.queries.patience import within

EXPORT = "/api/v1/jobs/export"


@require_safe
@page
def jobs(request: PageRequest) -> HttpResponse:
    """The jobs of the filter in the address, in the order it says."""
    query = request.GET
    if adding_of(query).is_whole:
        return redirect(jobs_address(with_added(query), **look_of(query)))
    try:
        wanted = job_filter(query, besides=BESIDES)
        order = order_of(query.get("sort", ""), JOBS.things, NEWEST_JOBS)
        usual = usual_columns(wanted)
        shown = columns_of(query.getlist("columns"), usual)
        if len(query.getlist("columns")) > 1:  # the form that chooses them
            look = {**look_of(query), "columns": chosen_as(shown, usual)}
            return redirect(jobs_address(filters_of(query), **look))
        with within(narrow=NARROW[JOBS.things]):
            found = found_of(request, list_jobs(wanted, order))
            counts = state_counts(wanted)
    except (FilterInvalid, Invalid, TooMuchAsked) as error:
        return _refused(request, error)
    context = _context(request, wanted, order, found, counts)
    gives_way = least(query.getlist("columns"))
    heads = headings(order, shown, filters_of(query), look_of(query), least=gives_way)
    return _show(request, wanted, {**context, "shown": shown, "headings": heads, "least": gives_way})


@require_safe
@page
def filter_form(request: PageRequest) -> HttpResponse:
    """The form that adds a filter, with the comparisons of the field that was chosen in it."""
    context = _of_adding(request.GET)
    unjudged = replace(context["adding"], problem="")
    return show(request, "jobs/adding.html", {**context, "adding": unjudged}, place="jobs")


def _of_adding(query: QueryDict) -> dict[str, Any]:
    look = look_of(query)
    return {
        "adding": adding_of(query),
        "kept": [*filters_of(query), *((name, text) for name, text in look.items() if text)],
        "field_groups": GROUPS,
        "queue_names": queue_names,
    }


def _refused(request: PageRequest, error: FilterInvalid | Invalid | TooMuchAsked) -> HttpResponse:
    """What cannot be read or is too much, with the way to the list of the filters that can be read."""
    asked = filters_of(request.GET)
    wanted = read_alone(asked)
    others = pairs_of(wanted)
    context = {
        "problems": _problems(error),
        "tally": [],
        "way_on": jobs_address(others) if others and isinstance(error, FilterInvalid) else "",
    }
    return _show(request, wanted, context, status=400)


def _context(
    request: PageRequest, wanted: JobFilter, order: Order, found: Found, counts: StateCounts
) -> dict[str, Any]:
    rows, now, look = found.page.rows, database_now(), look_of(request.GET)
    filters, no_queue = filters_of(request.GET), missing_queue(wanted, counts)
    return {
        "now": now,
        "rows": [line_of(row, now) for row in rows],
        "ordered": order_in_words(order),
        "exact": counts.is_exact,
        "tally": tally(wanted, counts, look),
        "summary": summary(wanted, counts, no_queue=no_queue),
        "page_words": page_words(found, wanted, order, counts),
        "older": jobs_address(filters, **look, cursor=found.page.next) if found.page.next else "",
        "newer": jobs_address(filters, **look, cursor=found.above.page_before) if found.above else "",
        "export": EXPORT + address_of([*filters, *_sort_in(look), ("format", "csv")]),
        "came_in": found.came_in,
        "empty": empty(wanted, counts, no_queue=no_queue),
        "first": rows[0].job.id if rows else "",
        "asks": asks_of_list(wanted, counts, request.actor) if rows else [],
    }


def _show(
    request: PageRequest, wanted: JobFilter, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    look = look_of(request.GET)
    shared = {
        **_of_adding(request.GET),
        "chips": chips(wanted, look),
        "kept_besides_columns": [*filters_of(request.GET), *_sort_in(look)],
        "column_choices": CHOICES,
    }
    return show(request, "jobs/jobs.html", {**shared, **context}, place="jobs", part="live", status=status)


def _sort_in(look: Mapping[str, str]) -> list[Pair]:
    return [("sort", look["sort"])] if look["sort"] else []


def _problems(error: FilterInvalid | Invalid | TooMuchAsked) -> Sequence[FilterProblem]:
    if isinstance(error, FilterInvalid):
        return error.problems
    return [FilterProblem(field=getattr(error, "path", ""), message=str(error))]
