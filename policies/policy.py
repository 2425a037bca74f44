"""A retry policy as a value: which failures run again, how often, and how the job changes first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from policies.failures import Failure
from policies.quantity import parse_bytes

__all__ = ["NO_MUTATION", "Action", "MemoryBump", "Mutation", "Policy", "Rule"]


class Action(StrEnum):
    """What a rule, or the default, says about a failure."""

    FAIL = "Fail"
    RETRY = "Retry"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryBump:
    """More memory for the next run: a fixed amount as written (`static`) or a multiple (`factor`), never both."""

    static: str = ""
    factor: float = 0.0

    @property
    def static_bytes(self) -> int:
        """The fixed amount in bytes, rounded up; 0 when there is none."""
        return parse_bytes(self.static) if self.static else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    """How a job changes before it runs again."""

    avoid_same_node: bool = False
    memory: MemoryBump | None = None

    def __bool__(self) -> bool:
        return self.avoid_same_node or self.memory is not None


NO_MUTATION = Mutation()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What to do about failures of one category, or of one subcategory of it."""

    action: Action
    on_category: str
    on_subcategory: str = ""
    mutation: Mutation = NO_MUTATION

    def matches(self, failure: Failure) -> bool:
        """Texts are compared exactly. A failure without a category is matched by no rule."""
        if not failure.category or failure.category != self.on_category:
            return False
        return self.on_subcategory in ("", failure.subcategory)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """Rules in order, the first that matches decides. `retry_limit` counts retries, not runs; 0 means none."""

    name: str
    default_action: Action
    retry_limit: int = 0
    rules: tuple[Rule, ...] = ()
