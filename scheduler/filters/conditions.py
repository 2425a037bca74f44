"""Conditions, and the filters made of them: frozen values that say which jobs, runs or decisions are meant."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from scheduler.filters.kinds import Value


class Match(StrEnum):
    """How a value is compared, as it stands between a field and its value in an address."""

    EQUALS = "="
    STARTS_WITH = "^="
    CONTAINS = "*="
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="
    EXISTS = "?="
    """Takes yes or no: there is a value at all."""

    @property
    def is_comparison(self) -> bool:
        """By order; these take one value."""
        return self in (Match.GREATER, Match.AT_LEAST, Match.LESS, Match.AT_MOST)


class Scope(StrEnum):
    """Whose value is looked at."""

    OWN = ""
    """That of the job, run or decision itself."""
    ANY = "any"
    """That of some run of the job."""
    LAST = "last"
    """That of its last run; for what is said of failures, of the last run that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One thing that must hold."""

    field: str
    """A name of the filter language, without key and scope."""
    key: str = ""
    """Which annotation, label or resource."""
    scope: Scope = Scope.OWN
    match: Match = Match.EQUALS
    values: tuple[Value, ...] = ()
    """Any of these; none for EXISTS."""
    negated: bool = False
    """It must not hold: exactly the others are meant."""

    @property
    def name(self) -> str:
        """Field, key and scope, as in an address."""
        return ".".join(part for part in (self.field, self.key, self.scope) if part)


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all hold. None means everything."""

    conditions: tuple[Condition, ...] = ()

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def __bool__(self) -> bool:
        """Something is asked for."""
        return bool(self.conditions)

    def values(self, name: str) -> tuple[Value, ...]:
        """Of which values one is asked for; empty when any will do, or when more is said of it than that."""
        said = [each for each in self.conditions if each.name == name]
        plain = len(said) == 1 and said[0].match is Match.EQUALS and not said[0].negated
        return said[0].values if plain else ()

    def without(self, *names: str) -> Self:
        """The same but for what it says of these."""
        return replace(self, conditions=tuple(each for each in self.conditions if each.name not in names))

    def __and__(self, other: Self) -> Self:
        """What both ask for."""
        return replace(self, conditions=self.conditions + other.conditions)


class JobFilter(Filter):
    """Which jobs.

    What is said of some run (`any`) without a negation holds of one and the same run; with one, of no run at all.
    """

    __slots__ = ()


class RunFilter(Filter):
    """Which runs."""

    __slots__ = ()


class DecisionFilter(Filter):
    """Which decisions."""

    __slots__ = ()
