"""Runs with their output, and the decisions about them."""

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.bodies import query_of
from lookout.api.endpoint import IF_NONE_MATCH, Endpoint, NoQuery, answer_tagged
from lookout.api.lists import HistoryRate, ListQuery, OneRate, answer_list, asked_of
from lookout.api.schema import described
from lookout.api.v1 import examples, other_examples
from lookout.api.v1.run_views import DecisionList, DecisionView, RunList, RunView, decision_view, run_view
from scheduler.errors import NotFound
from scheduler.filters import DECISIONS, RUNS, Order, RunFilter, decision_filter_of, run_filter_of
from scheduler.filters.orders import NEWEST_DECISIONS, NEWEST_RUNS, OLDEST_RUNS
from scheduler.queries.counting import total_of
from scheduler.queries.listings import NARROW, find_decisions, find_runs
from scheduler.queries.patience import within
from scheduler.queries.runs import decision_page, run_detail, run_output, run_page


class Runs(Endpoint):
    """Runs."""

    throttle_classes = (HistoryRate,)

    @described(
        "listRuns",
        tag="Runs",
        query=ListQuery,
        filters=RUNS,
        answer=RunList,
        example=examples.RUNS,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """The runs of a filter, each with its error and the decision about it, a page at a time.

        Those of one job come oldest first, others newest first, unless told otherwise.
        """
        asked = asked_of(request, RUNS, read=run_filter_of, otherwise=_usual_order, view=RunView)
        with within(narrow=NARROW[RUNS.things]):
            page = run_page(asked.wanted, order=asked.order, limit=asked.limit, cursor=asked.cursor)
            return answer_list(
                "runs",
                [run_view(run, page.sentences) for run in page.runs],
                asked=asked,
                rest=page.next,
                total=lambda: total_of(find_runs(asked.wanted)),
            )


def _usual_order(wanted: RunFilter) -> Order:
    return OLDEST_RUNS if len(wanted.values("job")) == 1 else NEWEST_RUNS


class RunEndpoint(Endpoint):
    """One run."""

    throttle_classes = (OneRate,)

    @described(
        "getRun", tag="Runs", answer=RunView, example=examples.RUN, headers=IF_NONE_MATCH, refusals=(404, 429)
    )
    def get(self, request: Request, run_id: str) -> Response:
        """One run with its error and the decision about it. Its ETag changes with anything of it."""
        query_of(request, NoQuery)
        detail = run_detail(run_id)
        return answer_tagged(request, run_view(detail.run, {detail.run.id: detail.sentence}))


class RunOutputEndpoint(Endpoint):
    """What a run wrote."""

    throttle_classes = (OneRate,)

    @described(
        "getRunOutput",
        tag="Runs",
        others={(200, "text/plain"): OpenApiTypes.STR},
        texts={"text/plain": other_examples.OUTPUT},
        refusals=(404, 429),
    )
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

    throttle_classes = (HistoryRate,)

    @described(
        "listDecisions",
        tag="Runs",
        query=ListQuery,
        filters=DECISIONS,
        answer=DecisionList,
        example=examples.DECISIONS,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """The decisions of a filter, newest first unless told otherwise, a page at a time."""
        asked = asked_of(
            request,
            DECISIONS,
            read=decision_filter_of,
            otherwise=lambda _: NEWEST_DECISIONS,
            view=DecisionView,
        )
        with within(narrow=NARROW[DECISIONS.things]):
            page = decision_page(asked.wanted, order=asked.order, limit=asked.limit, cursor=asked.cursor)
            return answer_list(
                "decisions",
                [decision_view(row.decision, row.sentence) for row in page.rows],
                asked=asked,
                rest=page.next,
                total=lambda: total_of(find_decisions(asked.wanted)),
            )
