"""Keyset pages, newest first: the place to go on from is a time and a key, so that new rows shift nothing."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet

from scheduler.errors import Invalid

MAX_LIMIT = 1_000
_YEARS = range(1970, 9_000)
"""Of moments in cursors; nearer to either end of time, zones lead out of it."""


def page_of[M: Model](
    rows: QuerySet[M], *, time: str, key: str, parse: Callable[[str], Any], limit: int, cursor: str
) -> tuple[list[M], str]:
    """Up to `limit` rows after the cursor, by time and key descending, and the cursor of the rest or nothing.

    `time` and `key` are fields of the row; `parse` reads a key from text. Raises Invalid for a limit or
    cursor that makes no sense.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"limit takes a number from 1 to {MAX_LIMIT:,}.", path="limit")
    if cursor:
        at, last = _read(cursor, parse)
        rows = rows.filter(Q(**{f"{time}__lte": at}), Q(**{f"{time}__lt": at}) | Q(**{f"{key}__lt": last}))
    found = list(rows.order_by(f"-{time}", f"-{key}")[: limit + 1])
    if len(found) <= limit:
        return found, ""
    return found[:limit], cursor_at(getattr(found[limit - 1], time), getattr(found[limit - 1], key))


def cursor_at(at: datetime, key: object) -> str:
    """The cursor of the page that begins after this place."""
    return urlsafe_b64encode(f"{at.isoformat()} {key}".encode()).decode().rstrip("=")


def _read(cursor: str, parse: Callable[[str], Any]) -> tuple[datetime, Any]:
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        at, _, key = text.partition(" ")
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None or moment.year not in _YEARS:
            raise ValueError("no moment of ours")
        return moment, parse(key)
    except (ValueError, binascii.Error, Invalid) as error:
        raise Invalid(
            "The cursor is not one that Tack gave out. Begin again without it.", path="cursor"
        ) from error
