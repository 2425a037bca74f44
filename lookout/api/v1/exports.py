"""Exports: all that a filter means, as CSV or lines of JSON, a stretch at a time for as long as somebody reads."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from lookout.api.bodies import parameters_of, query_of
from lookout.api.closing import is_closing, let_go
from lookout.api.endpoint import Endpoint
from lookout.api.flattening import columns_of, csv_line, csv_rows
from lookout.api.lists import HistoryRate, chosen_fields
from lookout.api.schema import described
from lookout.api.shapes import AtMost, encode, fields_of
from lookout.api.v1 import examples
from lookout.api.v1.export_sources import OF_DECISIONS, OF_JOBS, OF_RUNS, Source
from lookout.api.v1.streams import Places
from lookout.filters import pairs_in
from scheduler.filters import DECISIONS, JOBS, RUNS
from scheduler.queries.keyset import Listing
from scheduler.queries.patience import within

STRETCH = 1_000
"""Rows that are read at once; between two stretches nothing of the database is held."""
MOST_EXPORTS = 4
"""In one process: each holds a thread of it."""
PLACES = Places(MOST_EXPORTS, full="All exports of this server are taken. Try again in a few seconds.")


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Form(StrEnum):
    """How rows are written."""

    JSONL = "jsonl"
    CSV = "csv"


MEDIA = {Form.JSONL: "application/x-ndjson", Form.CSV: "text/csv; charset=utf-8"}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ExportQuery:
    """What is written, and how."""

    format: Form = Form.JSONL
    """One JSON object a line, or CSV with a line of column names."""
    sort: Annotated[str, AtMost(200)] = ""
    """At most two keys with a comma between, - before one for the other way. What has no value comes last."""
    fields: Annotated[str, AtMost(2_000)] = ""
    """Names of fields with commas between: only these are written."""
    cursors: bool = False
    """Each row also has `cursor`, the place to go on from after it."""
    cursor: Annotated[str, AtMost(16_000)] = ""
    """Go on after this place: nothing before it is written, nor the line of column names."""
    limit: int | None = None
    """At most so many rows."""


BESIDES = tuple(field.wire_name for field in fields_of(ExportQuery))


class ServerStops(Exception):
    """The export is broken off, so that nobody takes what came for all of it."""


class Export:
    """The body of an export. Closing it gives its place back, whether or not anything was read of it."""

    def __init__(self, source: Source, listing: Listing[Any], query: ExportQuery) -> None:
        """Reads the first stretch, so that what cannot be answered is refused. Raises Invalid and TooMuchAsked."""
        self._source, self._listing, self._query = source, listing, query
        self._fields = chosen_fields(query.fields, source.view)
        self._left = query.limit
        self._first = self._stretch(query.cursor)
        self.close = PLACES.take()

    def __iter__(self) -> Iterator[str]:
        if self._query.format is Form.CSV and not self._query.cursor:
            yield csv_line(self._columns)
        rows, cursor = self._first
        while True:
            yield self._written(rows)
            if not cursor:
                return
            if is_closing():
                raise ServerStops
            rows, cursor = self._stretch(cursor)

    @property
    def _columns(self) -> Sequence[str]:
        columns = columns_of(self._source.view, self._fields)
        return (*columns, "cursor") if self._query.cursors else columns

    def _stretch(self, cursor: str) -> tuple[list[dict[str, Any]], str]:
        """Some rows as JSON objects, and the cursor of the rest."""
        size = STRETCH if self._left is None else min(self._left, STRETCH)
        if not size:
            return [], ""
        try:
            with within(narrow=self._source.narrow):
                rows, places, rest = self._source.read(self._listing, limit=size, cursor=cursor)
        finally:
            let_go()
        if self._fields:
            rows = [{name: row[name] for name in self._fields} for row in rows]
        if self._query.cursors:
            for row, place in zip(rows, places, strict=True):
                row["cursor"] = self._listing.cursor_at(place)
        if self._left is not None:
            self._left -= len(rows)
        return rows, rest if self._left != 0 else ""

    def _written(self, rows: Sequence[dict[str, Any]]) -> str:
        if self._query.format is Form.CSV:
            return csv_rows(rows, self._columns)
        return "".join(f"{_JSON.encode(row)}\n" for row in rows)


def _exported(request: Request, source: Source) -> StreamingHttpResponse:
    query = query_of(request, ExportQuery, among=BESIDES)
    with within(narrow=source.narrow):
        listing = source.listing(pairs_in(parameters_of(request), besides=BESIDES), query.sort)
    answer = StreamingHttpResponse(Export(source, listing, query), content_type=MEDIA[query.format])
    answer.headers["Content-Disposition"] = f'attachment; filename="{source.grammar.things}.{query.format}"'
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"
    return answer


def _texts(source: Source, row: object) -> Mapping[str, str]:
    """A row in each form, for the description."""
    columns, told = columns_of(source.view), encode(row)
    return {
        "text/csv": csv_line(columns) + csv_rows([told], columns),
        MEDIA[Form.JSONL]: f"{_JSON.encode(told)}\n",
    }


_WRITTEN = {(200, MEDIA[Form.JSONL]): OpenApiTypes.STR, (200, "text/csv"): OpenApiTypes.STR}
_REFUSALS = (400, 429, 503)


class JobsExport(Endpoint):
    """Jobs, all that a filter means."""

    throttle_classes = (HistoryRate,)

    @described(
        "exportJobs",
        tag="Jobs",
        query=ExportQuery,
        filters=JOBS,
        others=_WRITTEN,
        texts=_texts(OF_JOBS, examples.JOB),
        refusals=_REFUSALS,
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """All jobs of a filter, as lines of JSON or CSV, as they are in lists.

        It is read little by little for as long as somebody reads, and is broken off rather than cut short.
        """
        return _exported(request, OF_JOBS)


class RunsExport(Endpoint):
    """Runs, all that a filter means."""

    throttle_classes = (HistoryRate,)

    @described(
        "exportRuns",
        tag="Runs",
        query=ExportQuery,
        filters=RUNS,
        others=_WRITTEN,
        texts=_texts(OF_RUNS, examples.RUN),
        refusals=_REFUSALS,
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """All runs of a filter, as lines of JSON or CSV, as they are in lists."""
        return _exported(request, OF_RUNS)


class DecisionsExport(Endpoint):
    """Decisions, all that a filter means."""

    throttle_classes = (HistoryRate,)

    @described(
        "exportDecisions",
        tag="Runs",
        query=ExportQuery,
        filters=DECISIONS,
        others=_WRITTEN,
        texts=_texts(OF_DECISIONS, examples.DECISION),
        refusals=_REFUSALS,
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """All decisions of a filter, as lines of JSON or CSV, as they are in lists."""
        return _exported(request, OF_DECISIONS)
