"""Runs with their output, and the decisions about them."""

import dataclasses
from typing import Annotated

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.bodies import query_of
from lookout.api.endpoint import Endpoint, NoQuery, answer
from lookout.api.schema import described
from lookout.api.shapes import AtMost
from lookout.api.v1.run_views import DecisionView, RunView, decision_view, run_view
from policies.decision import Verdict
from scheduler.errors import NotFound
from scheduler.filters import decision_filter_of, run_filter_of
from scheduler.queries.jobs import find_job
from scheduler.queries.pages import MAX_LIMIT
from scheduler.queries.runs import (
    decision_page,
    run_detail,
    run_output,
    run_page,
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunsQuery:
    """Which runs."""

    job: str
    """Id of the job."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunList:
    """The runs of a job, oldest first."""

    runs: tuple[RunView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DecisionsQuery:
    """Which decisions. Several verdicts mean any of them."""

    job: str = ""
    policy: str = ""
    verdict: tuple[Verdict, ...] = ()
    limit: Annotated[int, AtMost(MAX_LIMIT)] = 100
    cursor: str = ""
    """`next` of the page before."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DecisionList:
    """Some of the decisions that were asked for, newest first."""

    decisions: tuple[DecisionView, ...]
    next: str | None
    """The cursor of the page after this one; null on the last."""


class Runs(Endpoint):
    """The runs of a job."""

    @described("listRuns", tag="Runs", query=RunsQuery, answer=RunList, refusals=(400, 404))
    def get(self, request: Request) -> Response:
        """The runs of a job, oldest first, each with its error and the decision about it."""
        query = query_of(request, RunsQuery)
        page = run_page(run_filter_of([("job", find_job(query.job).id)]), limit=MAX_LIMIT)
        return answer(RunList(runs=tuple(run_view(run, page.sentences) for run in reversed(page.runs))))


class RunEndpoint(Endpoint):
    """One run."""

    @described("getRun", tag="Runs", answer=RunView, refusals=(404,))
    def get(self, request: Request, run_id: str) -> Response:
        """One run with its error and the decision about it."""
        query_of(request, NoQuery)
        detail = run_detail(run_id)
        return answer(run_view(detail.run, {detail.run.id: detail.sentence}))


class RunOutputEndpoint(Endpoint):
    """What a run wrote."""

    @described("getRunOutput", tag="Runs", others={(200, "text/plain"): OpenApiTypes.STR}, refusals=(404,))
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """What a run wrote: all of it, or its beginning and its end with a line between that says what is missing."""
        query_of(request, NoQuery)
        output = run_output(run_id)
        if output is None:
            raise NotFound("kept output of run", run_id)
        missing = f"\n[{output.dropped_bytes:,} bytes were not kept]\n" if output.dropped_bytes else ""
        text = bytes(output.head) + missing.encode() + bytes(output.tail)
        response = HttpResponse(text.decode(errors="replace"), content_type="text/plain; charset=utf-8")
        # What a job wrote is never taken for anything but text.
        response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return response


class Decisions(Endpoint):
    """What policies decided."""

    @described("listDecisions", tag="Runs", query=DecisionsQuery, answer=DecisionList, refusals=(400, 404))
    def get(self, request: Request) -> Response:
        """Decisions, newest first, a page at a time."""
        query = query_of(request, DecisionsQuery)
        job = find_job(query.job).id if query.job else ""
        verdicts = (("verdict", verdict) for verdict in query.verdict)
        wanted = decision_filter_of([("job", job), ("policy", query.policy), *verdicts])
        page = decision_page(wanted, limit=query.limit, cursor=query.cursor)
        views = tuple(decision_view(row.decision, row.sentence) for row in page.rows)
        return answer(DecisionList(decisions=views, next=page.next or None))
