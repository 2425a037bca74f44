"""The filters of the list of jobs: chips that hold, the one being added, and the counts by state."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from lookout.filters import FIELD_OF, FIELDS, FilterField, address_of, values_of
from scheduler.queries.jobs import JobFilter
from scheduler.states import JobState

BESIDES = ("cursor", "filter", "value")
"""Parameters of the page that are no filters: where it begins, and the form that adds a filter."""
_SHOWN_FIRST = (JobState.FAILED, JobState.RUNNING, JobState.QUEUED, JobState.LEASED, JobState.PENDING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chip:
    """One filter that holds."""

    label: str
    relation: str
    values: tuple[str, ...]
    open: str
    remove: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How many jobs are in a state, whatever states the filter names. Empty is all of them."""

    state: str
    count: int
    address: str
    current: bool


def filters_of(query: QueryDict, *, without: Sequence[FilterField] = ()) -> list[tuple[str, str]]:
    """The filters of an address as pairs of name and value, in the order pages show them."""
    return [
        (field.name, value) for field in FIELDS if field not in without for value in values_of(query, field)
    ]


def jobs_address(filters: Sequence[tuple[str, str]], **more: str) -> str:
    """The address of the list with these filters."""
    return reverse("jobs") + address_of([*filters, *more.items()])


def with_added(query: QueryDict) -> list[tuple[str, str]]:
    """The filters of an address with the one its form adds."""
    field = FIELD_OF[query.get("filter", "")]
    kept = filters_of(query, without=[field] if field.is_single else [])
    pair = (field.name, query.get("value", "").strip())
    return kept if pair in kept else [*kept, pair]


def chips(query: QueryDict) -> list[Chip]:
    """A chip per filter of the address."""
    return [
        Chip(
            label=field.label,
            relation=field.relation,
            values=tuple(values),
            open=jobs_address(filters_of(query), filter=field.name),
            remove=jobs_address(filters_of(query, without=[field])),
        )
        for field in FIELDS
        if (values := values_of(query, field))
    ]


def tally(query: QueryDict, wanted: JobFilter, counts: dict[JobState, int]) -> list[Tally]:
    """The quick filter by state. The states people look for first come first; others only when they hold jobs."""
    others = filters_of(query, without=[FIELD_OF["state"]])
    rest = [state for state in JobState if state not in _SHOWN_FIRST]
    entries = [
        Tally(state="", count=sum(counts.values()), address=jobs_address(others), current=not wanted.states)
    ]
    return entries + [
        Tally(
            state=state,
            count=counts[state],
            address=jobs_address([*others, ("state", state)]),
            current=wanted.states == (state,),
        )
        for state in (*_SHOWN_FIRST, *rest)
        if counts[state] or state in wanted.states or state in _SHOWN_FIRST[:3]
    ]
