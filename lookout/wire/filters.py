"""Filters as a program or a person writes them, made into parameters of an address."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

from lookout.wire.errors import Unsendable

type FilterValue = str | int | float | bool | datetime | date | UUID
"""A time without a zone is in UTC."""
type Filters = str | Mapping[str, FilterValue | Sequence[FilterValue]]
"""The filter language by name and comparison: `{"queue": "nightly", "node.last!": ["gpu-07", "gpu-08"]}`; or as the text of
an address, `queue=nightly&node.last!=gpu-07`."""

NO_FILTERS = ("limit", "sort", "count", "cursor", "cursors", "fields", "format")
"""What else lists and exports take. As filters they would do something else than asked, or nothing."""

_MORE = re.compile(r"&[A-Za-z][\w./-]*(?:[!^*?<>]*=|[<>])")
"""Where a filter follows another."""


def as_query(filters: Filters | None) -> dict[str, list[str]]:
    """Filters as parameters. Each is a list, because those without a value (`priority>5`) are sent as well.

    Raises Unsendable for what is no filter.
    """
    if isinstance(filters, str):
        return _without_others(filters_of_address(filters))
    if not isinstance(filters, Mapping | None):
        raise Unsendable(
            "filters are names with values, or text such as queue=nightly&retries>1, not a "
            f"{type(filters).__name__}; filters_in() makes them of a list"
        )
    found: dict[str, list[str]] = {}
    for name, value in (filters or {}).items():
        found.setdefault(str(name).removesuffix("="), []).extend(_texts(name, value))
    return _without_others(found)


def filters_in(words: str | Sequence[str]) -> dict[str, list[str]]:
    """Filters as people write them one by one: `queue=nightly`, `node.last!=gpu-07`, `priority>5`.

    One that holds others, `queue=nightly&state=failed`, is read as in an address, where an & of a value is %26.
    """
    found: dict[str, list[str]] = {}
    for word in [words] if isinstance(words, str) else words:
        if _MORE.search(word) or "%26" in word:
            for name, values in filters_of_address(word).items():
                found.setdefault(name, []).extend(values)
        else:
            name, _, value = word.partition("=")
            found.setdefault(name, []).append(value)
    return found


def filters_of_address(text: str) -> dict[str, list[str]]:
    """Filters as they stand in the address of a list of jobs: `queue=nightly&node.last!=gpu-07`."""
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


def _without_others(found: dict[str, list[str]]) -> dict[str, list[str]]:
    for name in found:
        if name in NO_FILTERS:
            raise Unsendable(
                f"{name} is no filter; what a call takes beside filters are arguments of its own"
            )
    return found


def _texts(name: str, value: object) -> list[str]:
    values = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return [_text(name, each) for each in values]


def _text(name: str, value: Any) -> str:
    """As the filter language writes it."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return f"{moment.replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str | int | float | UUID):
        return str(value)
    raise Unsendable(
        f"the filter {name} takes text, a number, yes or no, a time, or a list of them, not a {type(value).__name__}"
    )
