"""The part of the client that asks the history: jobs, runs and decisions by any filter, in any order, or all at once."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl

from lookout.wire.connection import Connection
from lookout.wire.views import Decision, Job, Run

type Filters = Mapping[str, str | Sequence[str]]
"""The filter language by name and comparison: `{"queue": "nightly", "node.last!": ["gpu-07", "gpu-08"]}`."""


class _Pages(Protocol):
    _connection: Connection

    def _pages[T](
        self, kind: type[T], path: str, *, key: str, query: Mapping[str, Any], limit: int | None
    ) -> Iterator[T]: ...


class History:
    """Finds jobs, runs and decisions."""

    def find_jobs(
        self: _Pages, filters: Filters, *, sort: str = "", limit: int | None = None
    ) -> Iterator[Job]:
        """The jobs of a filter, newest first unless told otherwise, page by page as they are asked for."""
        return self._pages(Job, "jobs", key="jobs", query={**as_query(filters), "sort": sort}, limit=limit)

    def find_runs(
        self: _Pages, filters: Filters, *, sort: str = "", limit: int | None = None
    ) -> Iterator[Run]:
        """The runs of a filter, the one leased last first unless told otherwise."""
        return self._pages(Run, "runs", key="runs", query={**as_query(filters), "sort": sort}, limit=limit)

    def find_decisions(
        self: _Pages, filters: Filters, *, sort: str = "", limit: int | None = None
    ) -> Iterator[Decision]:
        """The decisions of a filter, newest first unless told otherwise."""
        query = {**as_query(filters), "sort": sort}
        return self._pages(Decision, "decisions", key="decisions", query=query, limit=limit)

    def export(
        self: _Pages,
        what: str,
        filters: Filters,
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


def as_query(filters: Filters) -> dict[str, list[str]]:
    """Filters as parameters. Each is a list, because those without a value (`priority>5`) are sent as well."""
    return {name: [text] if isinstance(text, str) else list(text) for name, text in filters.items()}


def filters_in(words: Sequence[str]) -> dict[str, list[str]]:
    """Filters as people write them one by one: `queue=nightly`, `node.last!=gpu-07`, `priority>5`."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.partition("=")
        found.setdefault(name, []).append(value)
    return found


def filters_of_address(text: str) -> dict[str, list[str]]:
    """Filters as they stand in the address of a list of jobs: `queue=nightly&node.last!=gpu-07`."""
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found
