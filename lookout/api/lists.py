"""What lists have in common: a page at a time, in an order, with the fields asked for, and a total when wanted."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView

from lookout.api.bodies import parameters_of, query_of
from lookout.api.shapes import AtMost, FromOne, Named, encode, fields_of
from lookout.filters import pairs_in
from policies.fields import nearest
from policies.problems import DocumentInvalid, Problem
from scheduler.filters import Filter, Grammar, Order, Pair, order_of
from scheduler.queries.counting import Total
from scheduler.queries.keyset import MAX_LIMIT


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ListQuery:
    """Which part of the list, and how."""

    limit: Annotated[int, FromOne(MAX_LIMIT)] = 100
    cursor: Annotated[str, AtMost(16_000)] = ""
    """`next` of the page before. It belongs to the filters and the order it came from."""
    sort: Annotated[str, AtMost(200)] = ""
    """At most two keys with a comma between, - before one for the other way. What has no value comes last."""
    fields: Annotated[str, AtMost(2_000)] = ""
    """Names of fields with commas between: only these are in the answer."""
    count: bool = False
    """Also answer with `total`: how many there are in all."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TotalView:
    """How many there are in all."""

    count: int
    is_exact: Annotated[bool, Named("exact")]
    """False: there are more than 10,000, and this is the database's estimate."""


class HistoryRate(UserRateThrottle):
    """So many reads of the history a minute by one person, counted in each web process."""

    scope = "history"
    times = 1

    def get_rate(self) -> str:
        return f"{settings.TACK_READS_PER_MINUTE * self.times}/min"

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Only reads are counted: an address may also write."""
        return request.method not in ("GET", "HEAD") or super().allow_request(request, view)


class OneRate(HistoryRate):
    """Ten times as many of what is read by its id, counted apart: lists leave room for it, and it costs little."""

    scope, times = "one", 10


class EventsRate(HistoryRate):
    """As many looks at events, counted apart: following job sets is not held up by whatever else somebody reads."""

    scope, times = "events", 10


class EveryRead(HistoryRate):
    """The same for addresses that are read by POST."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        return UserRateThrottle.allow_request(self, request, view)


BESIDES = tuple(field.wire_name for field in fields_of(ListQuery))
"""Parameters that are no filters."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Asked[F: Filter]:
    """What a request asks of a list."""

    wanted: F
    order: Order
    limit: int
    cursor: str
    fields: Sequence[str]
    count: bool


def asked_of[F: Filter](
    request: Request,
    grammar: Grammar,
    *,
    read: Callable[[Collection[Pair]], F],
    otherwise: Callable[[F], Order],
    view: type[Any],
) -> Asked[F]:
    """What the address asks. Raises DocumentInvalid and FilterInvalid with every problem of their kind."""
    query = query_of(request, ListQuery, among=BESIDES)
    wanted = read(pairs_in(parameters_of(request), besides=BESIDES))
    return Asked(
        wanted=wanted,
        order=order_of(query.sort, grammar.things, otherwise(wanted)),
        limit=query.limit,
        cursor=query.cursor,
        fields=chosen_fields(query.fields, view),
        count=query.count,
    )


def chosen_fields(text: str, view: type[Any]) -> Sequence[str]:
    """The names in a list of fields; none for all of them. Raises DocumentInvalid for one that is not there."""
    known = [field.wire_name for field in fields_of(view)]
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    strange = [name for name in chosen if name not in known]
    if strange:
        raise DocumentInvalid([Problem(path="fields", message=_said_of(strange[0], known), code="invalid")])
    return chosen


def _said_of(name: str, known: Sequence[str]) -> str:
    """A sentence about a name that is no field of an answer."""
    whole = name.partition(".")[0]
    if whole != name and whole in known:
        return f"takes whole fields: write {whole}, not '{name[:60]}'."
    ends = (each for each in known if each.casefold().endswith(name.casefold()))
    near = nearest(name, known) or next(ends, "")
    meant = f" Did you mean {near}?" if near else ""
    return f"takes {', '.join(known)}; '{name[:60]}' is none.{meant}"


def only(views: Collection[Any], fields: Sequence[str]) -> list[Any]:
    """The views as JSON, with these fields of each, or all."""
    encoded = [encode(view) for view in views]
    return [{name: view[name] for name in fields} for view in encoded] if fields else encoded


def answer_list(
    key: str, views: Collection[Any], *, asked: Asked[Any], rest: str, total: Callable[[], Total]
) -> Response:
    """`{key: [...], "next": …}`, and `total` when it was asked for."""
    body: dict[str, Any] = {key: only(views, asked.fields), "next": rest or None}
    if asked.count:
        found = total()
        body["total"] = encode(TotalView(count=found.count, is_exact=found.is_exact))
    return Response(body)
