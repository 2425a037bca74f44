"""Labels and taints: which nodes a job may go to, with Kubernetes' words and meanings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

type Term = tuple["Expression", ...]
type Affinity = tuple[Term, ...]
"""Any of the terms, with all of its expressions; without a term every node will do."""


class Operator(StrEnum):
    """How an expression looks at a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class TolerationOperator(StrEnum):
    """Whether the value of a taint matters to a toleration."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class Effect(StrEnum):
    """What a taint does to jobs that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Expression(NamedTuple):
    """One condition on one label. Immutable, and ordered, so that equal affinities are equal however written."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets it. A label that is absent is in no list and is no number."""
        found = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return found in self.values
            case Operator.NOT_IN:
                return found not in self.values
            case Operator.EXISTS:
                return found is not None
            case Operator.DOES_NOT_EXIST:
                return found is None
        return self._compares(found)

    def _compares(self, found: str | None) -> bool:
        have, bound = _whole(found), _whole(self.values[0] if self.values else None)
        if have is None or bound is None:
            return False
        return have > bound if self.operator == Operator.GREATER else have < bound

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.key} {self.operator}{values}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Taint:
    """What keeps jobs off a node that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = Effect.NO_SCHEDULE

    @property
    def bars(self) -> bool:
        """It keeps them off; otherwise it only makes the node the last choice."""
        return self.effect != Effect.PREFER_NO_SCHEDULE

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key


class Toleration(NamedTuple):
    """The taints a job puts up with. Without a key it is all of them, without an effect any effect."""

    key: str = ""
    operator: str = TolerationOperator.EQUAL
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        """Whether the taint is one of those."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == TolerationOperator.EXISTS:
            return not self.key or self.key == taint.key
        return (self.key, self.value) == (taint.key, taint.value)


def matches(affinity: Affinity, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels will do. A term without expressions matches no node, as in Kubernetes."""
    return not affinity or any(
        term and all(expression.holds(labels) for expression in term) for term in affinity
    )


def untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, barring: bool = True
) -> Taint | None:
    """The first taint that keeps the job off the node, or with `barring=False` that makes it the last choice."""
    for taint in taints:
        if taint.bars is barring and not any(toleration.covers(taint) for toleration in tolerations):
            return taint
    return None


def affinity_of(stored: Iterable[Iterable[Mapping[str, Any]]]) -> Affinity:
    """The affinity of `[[{"key", "operator", "values"}]]`; the order in which it was written does not matter."""
    return tuple(sorted({tuple(sorted({_expression(each) for each in term})) for term in stored}))


def tolerations_of(stored: Iterable[Mapping[str, str]]) -> tuple[Toleration, ...]:
    """The tolerations of `[{"key", "operator", "value", "effect"}]`, in whatever order."""
    return tuple(sorted({_toleration(each) for each in stored}))


def taints_of(stored: Iterable[Mapping[str, str]]) -> tuple[Taint, ...]:
    """The taints of `[{"key", "value", "effect"}]`."""
    return tuple(
        Taint(key=each["key"], value=each.get("value") or "", effect=each.get("effect") or Effect.NO_SCHEDULE)
        for each in stored
    )


def _expression(stored: Mapping[str, Any]) -> Expression:
    values = tuple(sorted(set(map(str, stored.get("values") or ()))))
    return Expression(key=stored["key"], operator=stored["operator"], values=values)


def _toleration(stored: Mapping[str, str]) -> Toleration:
    return Toleration(
        key=stored.get("key") or "",
        operator=stored.get("operator") or TolerationOperator.EQUAL,
        value=stored.get("value") or "",
        effect=stored.get("effect") or "",
    )


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
