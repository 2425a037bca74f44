"""The page of the list of jobs that an address asks for: its rows, and where they stand in the whole list."""

from dataclasses import dataclass

from lookout.pages.shell import PageRequest
from scheduler.errors import NotFound
from scheduler.models import Job
from scheduler.queries.counting import BOUND
from scheduler.queries.jobs import JobPage, find_job, job_rows
from scheduler.queries.keyset import Listing
from scheduler.queries.newer import Newer, above

PAGE_SIZE = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A page of jobs."""

    page: JobPage
    above: Newer | None
    """What is above the page; None on the first."""
    number: int = 1
    """Of the first row in the whole list."""
    came_in: int = 0
    """Newer jobs held back, because the reader has scrolled down."""


def found_of(request: PageRequest, listing: Listing[Job]) -> Found:
    """The page from the cursor of the address, or the first; a reader who scrolled down keeps what is there."""
    cursor = request.GET.get("cursor", "")
    held = _held_back(request, listing) if not cursor else None
    if held is not None and held.at_row:
        return Found(page=_page(listing, held.at_row), above=None, came_in=held.count)
    page_found = _page(listing, cursor)
    if not cursor or not page_found.rows:
        return Found(page=page_found, above=None)
    first = listing.place_of(page_found.rows[0].job)
    return Found(
        page=page_found,
        above=above(listing, first, limit=PAGE_SIZE),
        number=listing.count_above(first, most=BOUND + 1) + 1,
    )


def _page(listing: Listing[Job], cursor: str) -> JobPage:
    jobs, rest = listing.page(limit=PAGE_SIZE, cursor=cursor)
    return JobPage(rows=tuple(job_rows(jobs)), next=rest)


def _held_back(request: PageRequest, listing: Listing[Job]) -> Newer | None:
    """What comes before the first row a scrolled page shows, when it says which that is."""
    first = request.headers.get("Tack-First", "")
    try:
        place = listing.find(find_job(first).id) if first else None
    except NotFound:
        return None
    return above(listing, place, limit=PAGE_SIZE) if place else None
