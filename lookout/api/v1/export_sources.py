"""What can be exported: how it is asked for, how a stretch of it is read, and what it looks like."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lookout.api.shapes import encode
from lookout.api.v1.exported_jobs import jobs_of
from lookout.api.v1.job_views import JobView
from lookout.api.v1.run_views import DecisionView, RunView, decision_view, run_view
from scheduler.filters import (
    DECISIONS,
    JOBS,
    RUNS,
    Grammar,
    Order,
    Pair,
    decision_filter_of,
    job_filter_of,
    order_of,
    run_filter_of,
)
from scheduler.filters.orders import NEWEST_DECISIONS, NEWEST_JOBS, NEWEST_RUNS
from scheduler.queries.keyset import Listing, Place
from scheduler.queries.listings import NARROW, list_decisions, list_jobs, list_runs
from scheduler.queries.runs import sentences_of
from scheduler.queries.sentences import with_sentences

type Stretch = tuple[list[dict[str, Any]], list[Place], str]
"""Rows as JSON objects, the place of each, and the cursor of the rest."""


class Read(Protocol):
    """Reads a stretch of a listing. Raises Invalid and TooMuchAsked."""

    def __call__(self, listing: Listing[Any], *, limit: int, cursor: str) -> Stretch: ...


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What can be exported: how it is asked for, read, and what it looks like."""

    grammar: Grammar
    listing: Callable[[Sequence[Pair], str], Listing[Any]]
    view: type[Any]
    read: Read

    @property
    def narrow(self) -> str:
        """How to ask for less."""
        return NARROW[self.grammar.things]


def _as_listed(views: Callable[[list[Any]], list[Any]]) -> Read:
    """Rows by the views of lists."""

    def read(listing: Listing[Any], *, limit: int, cursor: str) -> Stretch:
        found, rest = listing.page(limit=limit, cursor=cursor)
        return [encode(view) for view in views(found)], [listing.place_of(row) for row in found], rest

    return read


def _runs(rows: list[Any]) -> list[RunView]:
    sentences = sentences_of(rows)
    return [run_view(row, sentences) for row in rows]


def _decisions(rows: list[Any]) -> list[DecisionView]:
    return [decision_view(decision, sentence) for decision, sentence in with_sentences(rows)]


def _ordered(sort: str, grammar: Grammar, otherwise: Order) -> Order:
    return order_of(sort, grammar.things, otherwise)


OF_JOBS = Source(
    grammar=JOBS,
    listing=lambda pairs, sort: list_jobs(job_filter_of(pairs), _ordered(sort, JOBS, NEWEST_JOBS)),
    view=JobView,
    read=jobs_of,
)
OF_RUNS = Source(
    grammar=RUNS,
    listing=lambda pairs, sort: list_runs(run_filter_of(pairs), _ordered(sort, RUNS, NEWEST_RUNS)),
    view=RunView,
    read=_as_listed(_runs),
)
OF_DECISIONS = Source(
    grammar=DECISIONS,
    listing=lambda pairs, sort: list_decisions(
        decision_filter_of(pairs), _ordered(sort, DECISIONS, NEWEST_DECISIONS)
    ),
    view=DecisionView,
    read=_as_listed(_decisions),
)
