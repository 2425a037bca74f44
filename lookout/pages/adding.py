"""The form that adds a filter to the list of jobs: a field, one of the comparisons it takes, and a value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.http import QueryDict

from lookout.pages.bar import added_pair
from scheduler.filters import JOBS, RELATIONS, FilterField, FilterInvalid, Kind, Scope, job_filter_of

_FIELDS: Mapping[str, FilterField] = MappingProxyType(
    {field.asked_as: field for field in JOBS.fields.values()}
)
_FIRST = _FIELDS["queue"]
"""What the form begins with."""
_GROUPS = {
    Scope.OWN: "Job",
    Scope.LAST: "Last run, or the last that failed",
    Scope.ANY: "Any run",
}
GROUPS: Sequence[tuple[str, Sequence[FilterField]]] = tuple(
    (words, tuple(field for field in _FIELDS.values() if field.scope is scope))
    for scope, words in _GROUPS.items()
)
"""All fields there are, by whose they are."""
_NEEDS_NO_VALUE = ("?=", "!?=")


@dataclass(frozen=True, kw_only=True, slots=True)
class Adding:
    """The form as far as it was filled in."""

    field: FilterField = _FIRST
    match: str = ""
    value: str = ""
    is_open: bool = False
    problem: str = ""
    """Why what was filled in is no filter."""

    @property
    def relations(self) -> list[tuple[str, str]]:
        """The comparisons of the field: sign and words."""
        return _relations(self.field)

    @property
    def words(self) -> Sequence[str]:
        """The values there are, where these are few."""
        return ("yes", "no") if self.field.kind is Kind.FLAG else self.field.words

    @property
    def is_whole(self) -> bool:
        """It says a filter, or wants one of a field that does not exist: the list tells about that."""
        return self.is_open and not self.problem and bool(self.value or self.match in _NEEDS_NO_VALUE)


def adding_of(query: QueryDict) -> Adding:
    """The form of an address."""
    name, match, value = (query.get(part, "").strip() for part in ("filter", "match", "value"))
    field = _FIELDS.get(name)
    if field is None:
        return Adding(value=value, is_open=bool(name))
    is_sent = bool(value or (field.is_keyed and match in _NEEDS_NO_VALUE))
    problem = _problem(field, match or "=", query) if is_sent else ""
    return Adding(field=field, match=match, value=value, is_open=True, problem=problem)


def _relations(field: FilterField) -> list[tuple[str, str]]:
    if field.is_search:
        return [("=", "contains")]
    signs = (*field.signs, *(("!?=",) if field.can_be_empty else ()))
    return [(sign, words) for sign, words in RELATIONS.items() if sign in signs]


def _problem(field: FilterField, match: str, query: QueryDict) -> str:
    relations = dict(_relations(field))
    if match not in relations:
        return f"{field.label} is compared with: {', '.join(relations.values())}."
    if field.is_keyed and (problem := _problem_of_key(field, match, query.get("value", "").strip())):
        return problem
    try:
        job_filter_of([added_pair(query)])
    except FilterInvalid as error:
        return str(error)
    return ""


def _problem_of_key(field: FilterField, match: str, text: str) -> str:
    """A key without a value would ask nothing, and one with a value where none is compared would drop it."""
    key, sign, value = text.partition("=")
    if match in _NEEDS_NO_VALUE:
        return "" if key and not sign else f"{field.label}: type its KEY alone."
    if key and value:
        return ""
    whether = f" Whether there is one at all is asked with '{RELATIONS['?=']}'." if field.can_be_empty else ""
    return f"{field.label}: type KEY=VALUE.{whether}"
