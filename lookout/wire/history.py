"""The part of the client that asks the history: jobs, runs and decisions by any filter, in any order, or all at once."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from lookout.wire.connection import Connection
from lookout.wire.filters import Filters, as_query
from lookout.wire.views import Decision, Job, Run


class _Pages(Protocol):
    _connection: Connection

    def _pages[T](
        self, kind: type[T], path: str, *, key: str, query: Mapping[str, Any], limit: int | None
    ) -> Iterator[T]: ...


class History:
    """Finds jobs, runs and decisions."""

    def find_jobs(
        self: _Pages, filters: Filters | None = None, *, sort: str = "", limit: int | None = None
    ) -> Iterator[Job]:
        """The jobs of a filter, or all, newest first unless told otherwise, page by page as they are asked for."""
        return self._pages(Job, "jobs", key="jobs", query={**as_query(filters), "sort": sort}, limit=limit)

    def find_runs(
        self: _Pages, filters: Filters | None = None, *, sort: str = "", limit: int | None = None
    ) -> Iterator[Run]:
        """The runs of a filter, or all, the one leased last first unless told otherwise."""
        return self._pages(Run, "runs", key="runs", query={**as_query(filters), "sort": sort}, limit=limit)

    def find_decisions(
        self: _Pages, filters: Filters | None = None, *, sort: str = "", limit: int | None = None
    ) -> Iterator[Decision]:
        """The decisions of a filter, or all, newest first unless told otherwise."""
        query = {**as_query(filters), "sort": sort}
        return self._pages(Decision, "decisions", key="decisions", query=query, limit=limit)

    def export(
        self: _Pages,
        what: str,
        filters: Filters | None = None,
        *,
        form: str = "jsonl",
        sort: str = "",
        limit: int | None = None,
    ) -> Iterator[str]:
        """`jobs`, `runs` or `decisions`: all that a filter means, as pieces of text in the form `jsonl` or `csv`.

        However much it is, only a piece of it is held. Raises UnexpectedAnswer where it breaks off.
        """
        query = {**as_query(filters), "format": form, "sort": sort, "limit": limit}
        return self._connection.pieces(f"{what}/export", query=query)
