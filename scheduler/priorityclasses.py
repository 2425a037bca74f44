"""Priority classes as configured: who goes first, who may be preempted, how much of a pool one queue may hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.fields import problem_of_line
from scheduler.keys import LONGEST_NAME, Keys, flag, whole

HIGHEST_PRIORITY = 1_000_000_000
LONGEST_CLASS_NAME = 253

type Fractions = Mapping[str, float]
"""Resource → the part of all of it, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassConfiguration:
    """One of `scheduling.priorityClasses`."""

    priority: int = 0
    """Larger goes first, and may take the place of smaller."""
    preemptible: bool = False
    """Whether its runs may be ended for the sake of others' fair share, or because somebody asks."""
    maximum_fraction: Fractions = field(default_factory=dict)
    """`maximumResourceFractionPerQueue`: what one queue's jobs of the class may hold of a pool; the rest is free."""
    maximum_fraction_by_pool: Mapping[str, Fractions] = field(default_factory=dict)
    """`maximumResourceFractionPerQueueByPool`: the same for single pools, resource by resource before the other."""

    def limits_in(self, pool: str) -> dict[str, float]:
        """What one queue's jobs of the class may hold of this pool."""
        return {**self.maximum_fraction, **self.maximum_fraction_by_pool.get(pool, {})}


type Classes = Mapping[str, ClassConfiguration]

DEFAULT_CLASSES: Classes = {
    "armada-default": ClassConfiguration(priority=1000),
    "armada-preemptible": ClassConfiguration(priority=1000, preemptible=True),
}
"""Where the file names none: the model's, without its limits."""
DEFAULT_CLASS = "armada-default"


def read_classes(scheduling: Keys) -> Classes:
    """The priority classes of the file, or the default ones."""
    found = {
        name: _read_class(keys) for name, keys in scheduling.section("priorityClasses").sections().items()
    }
    for name in found:
        if not name or problem_of_line(name, most=LONGEST_CLASS_NAME):
            scheduling.problems.append(
                f"scheduling.priorityClasses holds a name that is none. A name is a line of 1 to {LONGEST_CLASS_NAME} characters."
            )
    return found or DEFAULT_CLASSES


def _read_class(keys: Keys) -> ClassConfiguration:
    return ClassConfiguration(
        priority=keys.take("priority", whole(0, HIGHEST_PRIORITY), 0),
        preemptible=keys.take("preemptible", flag, default=False),
        maximum_fraction=keys.take("maximumResourceFractionPerQueue", fractions, {}),
        maximum_fraction_by_pool=keys.take("maximumResourceFractionPerQueueByPool", _fractions_by_pool, {}),
    )


def fraction(value: Any) -> float:
    """A number from 0 to 1. Raises ValueError, as the others do."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("takes a number from 0 to 1")
    return float(value)


def fractions(value: Any) -> Fractions:
    """Resources with the part of each."""
    if not isinstance(value, Mapping) or any(problem_of_line(name, most=LONGEST_NAME) for name in value):
        raise ValueError("takes resources by name, such as {cpu: 0.5}")
    return {str(name): fraction(part) for name, part in value.items()}


def _fractions_by_pool(value: Any) -> Mapping[str, Fractions]:
    if not isinstance(value, Mapping) or any(problem_of_line(name, most=LONGEST_NAME) for name in value):
        raise ValueError("takes pools by name, each with resources, such as {default: {cpu: 0.5}}")
    return {str(pool): fractions(parts) for pool, parts in value.items()}
