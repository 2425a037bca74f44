"""The filters of the list of jobs: chips that hold, the one being added, and the counts by state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from lookout.filters import address_of, pairs_in
from scheduler.filters import JOBS, Condition, FilterInvalid, JobFilter, Pair, job_filter_of, pairs_of, said
from scheduler.queries.jobs import StateCounts
from scheduler.states import JobState

LOOK = ("sort", "columns")
"""Parameters that say how the list looks: they stay whatever is filtered."""
BESIDES = ("cursor", *LOOK, "filter", "match", "value")
"""Parameters of the page that are no filters: where it begins, how it looks, and the form that adds a filter."""
_STRICT = (">", "<")
_SINGLE = (">", ">=", "<", "<=", "?=", "!?=")
_SHOWN_FIRST = (JobState.FAILED, JobState.RUNNING, JobState.QUEUED, JobState.LEASED, JobState.PENDING)
STATES = (*_SHOWN_FIRST, *(state for state in JobState if state not in _SHOWN_FIRST))
"""The states as counts by state name them: those people look for come first."""


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


def filters_of(query: QueryDict) -> list[Pair]:
    """The filters of an address as pairs of name and value; what was left empty is no filter."""
    return [pair for pair in pairs_in(query, besides=BESIDES) if pair[1].strip() or set(pair[0]) & set("<>")]


def read_alone(pairs: Sequence[Pair]) -> JobFilter:
    """What the filters mean that can be read, without the others."""
    try:
        return job_filter_of(pair for pair in pairs if _is_read(pair))
    except FilterInvalid:  # each for itself is right, together they are too many
        return JobFilter()


def _is_read(pair: Pair) -> bool:
    try:
        job_filter_of([pair])
    except FilterInvalid:
        return False
    return True


def means_state(wanted: JobFilter, state: JobState) -> bool:
    """Whether jobs in this state may be meant."""
    return all((state in each.values) != each.negated for each in wanted if each.name == "state")


def look_of(query: QueryDict) -> dict[str, str]:
    """How the list of an address looks, to be kept in other addresses."""
    return {name: ",".join(text for text in query.getlist(name) if text) for name in LOOK}


def jobs_address(filters: Sequence[Pair], **more: str) -> str:
    """The address of the list with these filters, and with what else is not empty."""
    return reverse("jobs") + address_of([*filters, *((name, text) for name, text in more.items() if text)])


def added_pair(query: QueryDict) -> Pair:
    """The filter that the form of an address says. What is keyed is written `key=value` there."""
    name, match, value = (query.get(part, "").strip() for part in ("filter", "match", "value"))
    field = JOBS.field(name)
    if field and field.is_keyed:
        key, _, value = value.partition("=")
        name = f"{name}.{key}"
    return _pair(name, match or "=", value)


def with_added(query: QueryDict) -> list[Pair]:
    """The filters of an address with the one its form adds."""
    pair, field = added_pair(query), JOBS.field(query.get("filter", "").strip())
    replaced = query.get("match") in _SINGLE or (field is not None and field.is_search)
    return [kept for kept in filters_of(query) if kept != pair and not (replaced and kept[0] == pair[0])] + [
        pair
    ]


def _pair(name: str, match: str, value: str) -> Pair:
    if match in ("?=", "!?="):
        return f"{name}?", "no" if match.startswith("!") else "yes"
    return (f"{name}{match}{value}", "") if match in _STRICT else (f"{name}{match.removesuffix('=')}", value)


def chips(wanted: JobFilter, look: Mapping[str, str]) -> list[Chip]:
    """A chip per condition."""
    return [_chip(wanted, condition, look) for condition in wanted]


def _chip(wanted: JobFilter, condition: Condition, look: Mapping[str, str]) -> Chip:
    others = JobFilter(tuple(each for each in wanted if each != condition))
    field = JOBS.field(condition.field, condition.scope)
    assert field is not None
    label, relation, values = said(condition)
    return Chip(
        label=label,
        relation=relation,
        values=values,
        open=jobs_address(pairs_of(wanted), **look, filter=field.asked_as),
        remove=jobs_address(pairs_of(others), **look),
    )


def tally(wanted: JobFilter, found: StateCounts, look: Mapping[str, str]) -> list[Tally]:
    """The quick filter by state. The states people look for first come first; others only when they hold jobs."""
    others, current, counts = pairs_of(wanted.without("state")), wanted.values("state"), found.counts
    everything = jobs_address(others, **look)
    entries = [Tally(state="", count=sum(counts.values()), address=everything, current=not current)]
    return entries + [
        Tally(
            state=state,
            count=counts[state],
            address=jobs_address([*others, ("state", state)], **look),
            current=current == (state,),
        )
        for state in STATES
        if counts[state] or state in current or state in _SHOWN_FIRST[:3] or not found.is_exact
    ]
