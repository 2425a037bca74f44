"""The one filter language: what stands in an address, of a page or of the API, becomes a JobFilter.

A name given several times means "any of these"; different names are joined by "and". Nothing else is read:
an unknown name is a problem, never silently everything.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from scheduler.models.ulids import ulid_of, uuid_of
from scheduler.queries.jobs import JobFilter
from scheduler.states import JobState

MOST_VALUES = 100
"""Values one name may be given in one address."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterProblem:
    """One thing an address asks that no filter means."""

    field: str
    message: str


class FilterInvalid(Exception):
    """The address holds a filter that cannot be read. Every problem at once."""

    def __init__(self, problems: Collection[FilterProblem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterField:
    """A name of the filter language."""

    name: str
    """In the address."""
    attribute: str
    """In JobFilter."""
    label: str
    """On the page: "Queue is nightly"."""
    relation: str = "is"
    is_single: bool = False
    """Takes one value."""


FIELDS = (
    FilterField(name="queue", attribute="queue", label="Queue"),
    FilterField(name="state", attribute="states", label="State"),
    FilterField(name="jobSet", attribute="job_set", label="Job set"),
    FilterField(name="category.last", attribute="category_last", label="Last failure"),
    FilterField(name="category.any", attribute="category_any", label="Any failure"),
    FilterField(name="id", attribute="ids", label="Job"),
    FilterField(name="text", attribute="text", label="Job set or owner", relation="contains", is_single=True),
)
FIELD_OF = {field.name: field for field in FIELDS}


def job_filter(query: QueryDict, *, besides: Collection[str] = ()) -> JobFilter:
    """The filter of an address. `besides` names parameters that are not filters, such as `cursor`.

    Raises FilterInvalid with every problem.
    """
    problems = [*_unknown(query, besides), *_oversized(query), *_wrong(query)]
    if problems:
        raise FilterInvalid(problems)
    read: dict[str, Any] = {field.attribute: _read(query, field) for field in FIELDS}
    return JobFilter(**read)


def values_of(query: QueryDict, field: FilterField) -> list[str]:
    """The values an address gives a name: in its order, each once, empty ones left out."""
    given = dict.fromkeys(value.strip() for value in query.getlist(field.name))
    values = [value for value in given if value]
    return [value.lower() for value in values] if field.name in ("id", "state") else values


def _read(query: QueryDict, field: FilterField) -> str | tuple[str, ...]:
    values = values_of(query, field)
    return "".join(values[:1]) if field.is_single else tuple(values)


def address_of(values: Iterable[tuple[str, str]]) -> str:
    """The part of an address after the question mark, with the question mark; empty without values."""
    text = urlencode(list(values))
    return f"?{text}" if text else ""


def _unknown(query: QueryDict, besides: Collection[str]) -> list[FilterProblem]:
    known = ", ".join(field.name for field in FIELDS)
    return [
        FilterProblem(field=name, message=f"There is no filter '{name[:60]}'. The filters are {known}.")
        for name in query
        if name not in FIELD_OF and name not in besides
    ]


def _oversized(query: QueryDict) -> list[FilterProblem]:
    return [
        FilterProblem(field=field.name, message=f"{field.name} takes at most {most} value{'s' * (most > 1)}.")
        for field in FIELDS
        if len(values_of(query, field)) > (most := 1 if field.is_single else MOST_VALUES)
    ]


def _wrong(query: QueryDict) -> list[FilterProblem]:
    states = ", ".join(JobState)
    problems = [
        FilterProblem(field="state", message=f"state takes {states}; '{value[:60]}' is none of them.")
        for value in values_of(query, FIELD_OF["state"])
        if value not in list(JobState)
    ]
    problems += [
        FilterProblem(
            field="id", message=f"id takes a job id of 26 letters and digits; '{value[:60]}' is none."
        )
        for value in values_of(query, FIELD_OF["id"])
        if not _is_job_id(value)
    ]
    return problems + [
        FilterProblem(field=name, message=f"{name} holds a character that no name can hold.")
        for name, values in query.lists()
        if any("\x00" in value for value in values)
    ]


def _is_job_id(text: str) -> bool:
    try:
        return ulid_of(uuid_of(text)) == text
    except ValueError:
        return False
