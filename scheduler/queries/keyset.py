"""Keyset pages in any order: a page goes on from the place of a row, so that rows that come or go shift nothing.

A cursor is that place, signed together with the question it belongs to.
"""

import binascii
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import Combinable, OrderBy
from django.utils.crypto import salted_hmac

from scheduler.errors import Invalid
from scheduler.filters.orders import Order, SortKey

MAX_LIMIT = 1_000
_SIGNATURE_BYTES = 12
_LONGEST_CURSOR = 16_000

type Place = tuple[Any, ...]
"""What a row has of each key of an order; the last one is its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SortColumn:
    """Where the values of a sort key stand."""

    source: str | Combinable
    is_time: bool = False
    can_be_null: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Key:
    """A key in its place in the statement."""

    alias: str
    column: SortColumn
    descending: bool

    @property
    def in_order(self) -> OrderBy:
        nulls = True if self.column.can_be_null else None
        return (
            F(self.alias).desc(nulls_last=nulls) if self.descending else F(self.alias).asc(nulls_last=nulls)
        )

    @property
    def in_reverse(self) -> OrderBy:
        nulls = True if self.column.can_be_null else None
        return (
            F(self.alias).asc(nulls_first=nulls) if self.descending else F(self.alias).desc(nulls_first=nulls)
        )

    def equals(self, value: Any) -> Q:
        return Q(**{f"{self.alias}__isnull": True}) if value is None else Q(**{self.alias: value})

    def beyond(self, value: Any, *, backwards: bool) -> Q:
        """Rows that differ in this key and come after it, or before it."""
        if value is None:
            return Q(**{f"{self.alias}__isnull": False}) if backwards else Q(pk__in=())
        found = Q(**{f"{self.alias}__{'lt' if self.descending != backwards else 'gt'}": value})
        nulls_follow = self.column.can_be_null and not backwards
        return found | Q(**{f"{self.alias}__isnull": True}) if nulls_follow else found

    def bound(self, value: Any, *, backwards: bool) -> Q:
        """Says nothing new, in a form that an index is looked up by."""
        if self.column.can_be_null:
            return Q()
        return Q(**{f"{self.alias}__{'lte' if self.descending != backwards else 'gte'}": value})


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Which part of a list is read."""

    number: int
    """Rows that are wanted."""
    descending: bool
    """By the first key of the list."""
    start: Any = None
    """What the first key is at the place where it begins; None from one end."""


class Listing[M: Model]:
    """Rows in an order that leaves no two of them equal."""

    def __init__(
        self,
        rows: QuerySet[M],
        *,
        order: Order,
        columns: Mapping[str, SortColumn],
        own: str,
        question: str,
        walk: "Callable[[QuerySet[M], Stretch], QuerySet[M]] | None" = None,
    ) -> None:
        """`own` names the key no two rows share; `question` is what cursors are bound to.

        `walk` finds the first of ordered rows; where it is given, it may leave out rows that are not meant.
        """
        self._keys = [
            _Key(alias=f"sort_{number}", column=columns[key.name], descending=key.descending)
            for number, key in enumerate(_with_own(order, own))
        ]
        self._rows = rows.annotate(**{key.alias: _expression(key.column) for key in self._keys})
        self._question = f"{question} {','.join(map(str, order))}"
        self._walk = walk

    def page(self, *, limit: int, cursor: str = "", most: int = MAX_LIMIT) -> tuple[list[M], str]:
        """Up to `limit` rows after the cursor, and the cursor of the rest; empty when nothing is left.

        Raises Invalid for a limit or cursor that makes no sense.
        """
        found = list(self._after(cursor, limit, most))
        rest = self.cursor_at(self.place_of(found[limit - 1])) if len(found) > limit else ""
        return found[:limit], rest

    def places(self, *, limit: int, cursor: str = "") -> tuple[list[Place], str]:
        """The same, but only where the rows are: for those who read what is there in a way of their own."""
        found = list(self._after(cursor, limit, MAX_LIMIT).values_list(*(key.alias for key in self._keys)))
        return found[:limit], self.cursor_at(found[limit - 1]) if len(found) > limit else ""

    def _after(self, cursor: str, limit: int, most: int) -> QuerySet[M]:
        if not 1 <= limit <= most:
            raise Invalid(f"limit takes a number from 1 to {most:,}.", path="limit")
        return self._first(limit + 1, after=self._read(cursor) if cursor else None)

    def stretch(self, *, skip: int, take: int) -> list[M]:
        """Rows by their numbers, for those who have no cursor: the more are skipped, the longer it takes."""
        return list(self._first(skip + take)[skip:])

    def nearest_above(self, place: Place, *, limit: int) -> list[Place]:
        """The places of the rows before this one, the nearest first, at most so many."""
        nearest = self._first(limit, after=place, backwards=True)
        return list(nearest.values_list(*(key.alias for key in self._keys)))

    def count_above(self, place: Place, *, most: int) -> int:
        """How many rows come before this place, counted up to `most`."""
        number: int = self._first(most, after=place, backwards=True).values("pk").count()
        return number

    def place_of(self, row: M) -> Place:
        """The place of a row that this listing found."""
        return tuple(getattr(row, key.alias) for key in self._keys)

    def find(self, pk: object) -> Place | None:
        """The place of a row by its key, whether or not the filter means it still; None for one that can have no place."""
        places = self._rows.model._default_manager.annotate(  # noqa: SLF001
            **{key.alias: _expression(key.column) for key in self._keys}
        )
        place: Place | None = places.filter(pk=pk).values_list(*(key.alias for key in self._keys)).first()
        return place if place and self._can_be(place) else None

    def _can_be(self, place: Place) -> bool:
        return all(
            value is not None or key.column.can_be_null for key, value in zip(self._keys, place, strict=True)
        )

    def cursor_at(self, place: Place) -> str:
        """The cursor of the page that begins after this place."""
        payload = json.dumps([_plain(value) for value in place], separators=(",", ":")).encode()
        return urlsafe_b64encode(self._signature(payload) + payload).decode().rstrip("=")

    def _first(self, number: int, *, after: Place | None = None, backwards: bool = False) -> QuerySet[M]:
        """So many rows from one end, or beyond a place."""
        rows = self._rows if after is None else self._rows.filter(self._beyond(after, backwards=backwards))
        rows = rows.order_by(*(key.in_reverse if backwards else key.in_order for key in self._keys))
        descending = self._keys[0].descending is not backwards
        stretch = Stretch(number=number, descending=descending, start=after[0] if after else None)
        return (self._walk(rows, stretch) if self._walk else rows)[:number]

    def _beyond(self, place: Place, *, backwards: bool = False) -> Q:
        found = Q(pk__in=())
        for key, value in reversed(list(zip(self._keys, place, strict=True))):
            found = key.beyond(value, backwards=backwards) | (key.equals(value) & found)
        return self._keys[0].bound(place[0], backwards=backwards) & found

    def _read(self, cursor: str) -> Place:
        try:
            sent = urlsafe_b64decode(cursor[:_LONGEST_CURSOR].encode("ascii") + b"=" * (-len(cursor) % 4))
        except (ValueError, binascii.Error) as error:
            raise _refused() from error
        signature, payload = sent[:_SIGNATURE_BYTES], sent[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(payload)):
            raise _refused()
        values = json.loads(payload)
        return tuple(
            datetime.fromisoformat(value) if key.column.is_time and value is not None else value
            for key, value in zip(self._keys, values, strict=True)
        )

    def _signature(self, payload: bytes) -> bytes:
        signed = salted_hmac("tack.cursor", self._question.encode() + b"\n" + payload, algorithm="sha256")
        return signed.digest()[:_SIGNATURE_BYTES]


def _with_own(order: Order, own: str) -> Sequence[SortKey]:
    """The order, made complete: rows that are equal in it go by their own key, the way the last key goes."""
    names = [key.name for key in order]
    if own in names:
        return order[: names.index(own) + 1]
    return (*order, SortKey(name=own, descending=order[-1].descending))


def _expression(column: SortColumn) -> Combinable:
    return F(column.source) if isinstance(column.source, str) else column.source


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, int | float) else str(value)


def _refused() -> Invalid:
    return Invalid(
        "The cursor is not one that Tack gave out for this question. Begin again without it.", path="cursor"
    )
