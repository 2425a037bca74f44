"""What comes before a row of a list: what the way back leads to, and what came in since the list was drawn."""

from dataclasses import dataclass
from typing import Any

from scheduler.queries.keyset import Listing, Place

MOST_COUNTED = 100
"""Rows above are counted up to here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Newer:
    """The rows of a list above one."""

    count: int
    """At most MOST_COUNTED."""
    page_before: str
    """The cursor of the page that ends just above the row; empty when that is the first page."""
    at_row: str
    """The cursor of the page that begins with the row; empty when nothing is above it."""


def above(listing: Listing[Any], place: Place, *, limit: int) -> Newer:
    """What is above a place in a list, in one query. `limit` is the size of a page."""
    places = listing.nearest_above(place, limit=max(limit, MOST_COUNTED) + 1)
    return Newer(
        count=min(len(places), MOST_COUNTED),
        page_before=listing.cursor_at(places[limit]) if len(places) > limit else "",
        at_row=listing.cursor_at(places[0]) if places else "",
    )
