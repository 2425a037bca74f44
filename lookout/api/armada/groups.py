"""Groups of jobs in the shapes of Armada's Lookout."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lookout.api.armada.requests import Direction, GroupsDocument, filter_in
from lookout.api.armada.views import state_shown
from scheduler.errors import Invalid
from scheduler.queries.groups import ANNOTATION, MOST_GROUPS, JobGroup, job_groups

FIELDS: Mapping[str, str] = {
    "queue": "queue", "namespace": "namespace", "jobSet": "jobSet", "state": "state", "cluster": "executor",
    "node": "node", "pool": "pool",
}  # fmt: skip
_CHANGED: Mapping[str, Callable[[JobGroup], Any]] = {
    "latest": lambda group: group.last_changed_at,
    "earliest": lambda group: group.first_changed_at,
    "average": lambda group: group.average_changed_at,
}
AGGREGATES = ("state", "submitted", "lastTransitionTime")


def groups_shown(document: GroupsDocument) -> list[dict[str, Any]]:
    """A stretch of the groups, in the order asked for. Raises Invalid, FilterInvalid and TooMuchAsked."""
    changed = _changed(document)
    _check_aggregates(document)
    groups = _merged([group for group in _found(document) if group.keys[0] is not None], document)
    groups.sort(key=_sorted_by(document, changed), reverse=_is_descending(document))
    taken = groups[document.skip :][: document.take or MOST_GROUPS]
    return [_shown(group, document, changed) for group in taken]


def _found(document: GroupsDocument) -> tuple[JobGroup, ...]:
    wanted, by = filter_in(document), [_grouped_by(document)]
    first_change = document.grouped_field.last_transition_time_aggregate == "earliest"
    return job_groups(wanted, by, limit=MOST_GROUPS, first_change=first_change).groups


def _merged(groups: list[JobGroup], document: GroupsDocument) -> list[JobGroup]:
    """Two of our states have one name there."""
    if document.grouped_field.field != "state" or document.grouped_field.is_annotation:
        return groups
    by_name: dict[str, JobGroup] = {}
    for group in groups:
        name = state_shown(str(group.keys[0]))
        by_name[name] = _together(by_name[name], group) if name in by_name else replace(group, keys=(name,))
    return list(by_name.values())


def _together(one: JobGroup, other: JobGroup) -> JobGroup:
    share = other.jobs / (one.jobs + other.jobs)
    between = other.average_changed_at - one.average_changed_at
    return replace(
        one,
        jobs=one.jobs + other.jobs,
        states={**one.states, **other.states},
        first_submitted_at=min(one.first_submitted_at, other.first_submitted_at),
        first_changed_at=min(filter(None, (one.first_changed_at, other.first_changed_at)), default=None),
        last_changed_at=max(one.last_changed_at, other.last_changed_at),
        average_changed_at=one.average_changed_at + between * share,
    )


def _grouped_by(document: GroupsDocument) -> str:
    grouped = document.grouped_field
    if grouped.is_annotation:
        return f"{ANNOTATION}{grouped.field}"
    if grouped.field not in FIELDS:
        raise Invalid(f"Jobs are grouped by {', '.join(FIELDS)} or an annotation.", path="groupedField.field")
    return FIELDS[grouped.field]


def _changed(document: GroupsDocument) -> Callable[[JobGroup], Any]:
    wanted = document.grouped_field.last_transition_time_aggregate or "average"
    if wanted not in _CHANGED:
        path = "groupedField.lastTransitionTimeAggregate"
        raise Invalid(f"Takes {' or '.join(_CHANGED)}.", path=path)
    return _CHANGED[wanted]


def _check_aggregates(document: GroupsDocument) -> None:
    if strange := set(document.aggregates or ()) - set(AGGREGATES):
        message = f"Aggregates are {', '.join(AGGREGATES)}; '{min(strange)[:60]}' is none."
        raise Invalid(message, path="aggregates")


def _is_descending(document: GroupsDocument) -> bool:
    return document.order is None or document.order.direction is Direction.DESC


def _sorted_by(document: GroupsDocument, changed: Callable[[JobGroup], Any]) -> Callable[[JobGroup], Any]:
    wanted = document.order.field if document.order else "count"
    if document.order and wanted == document.grouped_field.field:
        return lambda group: group.keys[0]
    ways: Mapping[str, Callable[[JobGroup], Any]] = {
        "count": lambda group: group.jobs,
        "submitted": lambda group: group.first_submitted_at,
        "lastTransitionTime": changed,
    }
    if wanted not in ways:
        message = f"Groups are ordered by {', '.join(ways)} or the field they are grouped by."
        raise Invalid(message, path="order.field")
    return ways[wanted]


def _shown(group: JobGroup, document: GroupsDocument, changed: Callable[[JobGroup], Any]) -> dict[str, Any]:
    aggregates: Mapping[str, Callable[[], Any]] = {
        "state": lambda: _states(group),
        "submitted": lambda: group.first_submitted_at,
        "lastTransitionTime": lambda: changed(group),
    }
    return {
        "name": str(group.keys[0]),
        "count": group.jobs,
        "aggregates": {each: aggregates[each]() for each in document.aggregates or ()},
    }


def _states(group: JobGroup) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state, count in group.states.items():
        counts[state_shown(state)] = counts.get(state_shown(state), 0) + count
    return counts
