"""Filters of jobs in words: on chips, in the question before something is done to all of them, in the change log."""

from typing import NamedTuple

from scheduler.filters.conditions import Condition, JobFilter
from scheduler.filters.fields import JOBS, in_a_sentence
from scheduler.filters.kinds import written_value

RELATIONS = {
    "=": "is", "!=": "is not", "^=": "starts with", "!^=": "does not start with", "*=": "contains",
    "!*=": "does not contain", ">": "above", ">=": "from", "<": "below", "<=": "up to", "?=": "has a value",
    "!?=": "has no value",
}  # fmt: skip
"""The comparisons of the language by their signs."""


class Said(NamedTuple):
    """One condition, in its parts."""

    label: str
    relation: str
    values: tuple[str, ...]


def said(condition: Condition) -> Said:
    """The parts of a condition about jobs."""
    field = JOBS.field(condition.field, condition.scope)
    assert field is not None
    sign = f"{'!' * condition.negated}{condition.match}"
    return Said(
        label=f"{field.label} {condition.key}" if condition.key else field.label,
        relation="contains" if field.is_search else RELATIONS[sign],
        values=tuple(written_value(field.kind, value) for value in condition.values),
    )


def in_words(wanted: JobFilter) -> str:
    """All conditions in one line: `queue is nightly; any failure is oom or disk`."""
    parts = map(said, wanted)
    return "; ".join(
        f"{in_a_sentence(label)} {relation} {' or '.join(values)}".rstrip()
        for label, relation, values in parts
    )
