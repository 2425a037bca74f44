"""Gangs as jobs ask for them: by annotations of each member, which must agree within a submission."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.fields import problem_of_line
from scheduler.spelling import Problems, below

GANG_ID = "armadaproject.io/gangId"
CARDINALITY = "armadaproject.io/gangCardinality"
UNIFORMITY_LABEL = "armadaproject.io/gangNodeUniformityLabel"
_PREFIX = "armadaproject.io/gang"
MOST_MEMBERS = 1_000
"""All of them start in one round, in one transaction."""
LONGEST_ID = 253
LONGEST_LABEL = 317


@dataclass(frozen=True, kw_only=True, slots=True)
class Membership:
    """Which gang a job belongs to. Its members start together, or not at all."""

    gang_id: str = ""
    """Empty for a job of its own."""
    cardinality: int = 1
    """How many members start together."""
    uniformity_label: str = ""
    """All members go to nodes with one value of this label; empty for any nodes."""


ALONE = Membership()
"""Of a job that is no member of a gang."""


def read_membership(annotations: Mapping[str, str], path: str, problems: Problems) -> Membership:
    """The gang that annotations name, every problem noted. A cardinality of 1 makes a job of its own."""
    asked = {key: value for key, value in annotations.items() if key.startswith(_PREFIX)}
    for key in asked:
        if key not in (GANG_ID, CARDINALITY, UNIFORMITY_LABEL):
            problems.add(below(path, key), "Is not supported. Remove it.", "not_supported")
    if not asked:
        return ALONE
    found = Membership(
        gang_id=_line(annotations, GANG_ID, path, problems, most=LONGEST_ID),
        cardinality=_cardinality(annotations, path, problems),
        uniformity_label=_line(annotations, UNIFORMITY_LABEL, path, problems, most=LONGEST_LABEL),
    )
    if not found.gang_id and GANG_ID not in annotations:
        problems.add(
            path, f"A gang needs the annotation {GANG_ID}, the same for all its members.", "required"
        )
    return found if found.cardinality > 1 else ALONE


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A job of a submission that is of a gang."""

    path: str
    """Of the job in its file."""
    gang: Membership
    priority_class: str


def check_gangs(members: Iterable[Member], problems: Problems) -> None:
    """Note where members of one gang disagree, and where they are more than they say."""
    by_gang: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_gang[member.gang.gang_id].append(member)
    for gang in by_gang.values():
        for other in gang[1:]:
            _note_difference(gang[0], other, problems)
        _note_too_many(gang, problems)


def check_joining(
    members: Sequence[Member], *, there: int, said: Membership, priority_class: str, problems: Problems
) -> None:
    """Note where members of one gang disagree with those of it that were submitted before, or are too many."""
    before = Member(path="", gang=said, priority_class=priority_class)
    for member in members:
        _note_difference(before, member, problems)
    free = max(0, said.cardinality - there)
    if len(members) > free:
        message = (
            f"Gang '{said.gang_id}' of this queue has {there} of its {said.cardinality} members already. "
            "Give these another gang id, or wait until it has ended."
        )
        problems.add(below(below(members[free].path, "annotations"), GANG_ID), message)


def _note_difference(first: Member, other: Member, problems: Problems) -> None:
    name, at = first.gang.gang_id, below(other.path, "annotations")
    if other.gang.cardinality != first.gang.cardinality:
        message = f"Other members of gang '{name}' say {first.gang.cardinality}. Make them the same."
        problems.add(below(at, CARDINALITY), message)
    elif other.gang.uniformity_label != first.gang.uniformity_label:
        message = f"Other members of gang '{name}' name another label, or none. Make them the same."
        problems.add(below(at, UNIFORMITY_LABEL), message)
    elif other.priority_class != first.priority_class:
        message = f"Other members of gang '{name}' are of another priority class. Make them the same."
        problems.add(f"{other.path}.podSpec.priorityClassName", message)


def _note_too_many(gang: Sequence[Member], problems: Problems) -> None:
    first = gang[0].gang
    if len(gang) > first.cardinality:
        message = (
            f"Gang '{first.gang_id}' has {len(gang)} members in this file and says {first.cardinality}. "
            "Raise its cardinality, or give the others another gang id."
        )
        problems.add(below(below(gang[first.cardinality].path, "annotations"), GANG_ID), message)


def _cardinality(annotations: Mapping[str, str], path: str, problems: Problems) -> int:
    written = annotations.get(CARDINALITY, "")
    if written.isascii() and written.isdecimal() and len(written) < 10 and 1 <= int(written) <= MOST_MEMBERS:
        return int(written)
    says = f"Takes how many members the gang has, as text: a whole number from 1 to {MOST_MEMBERS:,}."
    problems.add(below(path, CARDINALITY), says, "invalid" if written else "required")
    return 1


def _line(annotations: Mapping[str, str], key: str, path: str, problems: Problems, *, most: int) -> str:
    value = annotations.get(key)
    if value is None:
        return ""
    if problem := problem_of_line(value, most=most) or ("" if value else "Must not be empty."):
        problems.add(below(path, key), problem)
        return ""
    return value
