"""The matchers of category rules: each looks at the signals of an end and says what it recognised.

Patterns are RE2: they search in linear time, so no pattern can hang the process that reads a message.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import re2

from policies.signals import ContainerEnd, Signals

__all__ = [
    "Condition",
    "ConditionMatcher",
    "Evidence",
    "ExitCodeMatcher",
    "ExitCodeOperator",
    "Matcher",
    "MatcherKind",
    "Pattern",
    "PatternError",
    "PodErrorMatcher",
    "PodEventMatcher",
    "TerminationMessageMatcher",
    "compile_pattern",
]


class MatcherKind(StrEnum):
    """The matchers, by the field that writes them in a configuration."""

    CONDITIONS = "onConditions"
    EXIT_CODES = "onExitCodes"
    TERMINATION_MESSAGE = "onTerminationMessage"
    POD_ERROR = "onPodError"
    POD_EVENTS = "onPodEvents"


class Condition(StrEnum):
    """The conditions an executor can observe."""

    OOM_KILLED = "OOMKilled"
    EVICTED = "Evicted"
    DEADLINE_EXCEEDED = "DeadlineExceeded"


class ExitCodeOperator(StrEnum):
    """Whether the listed exit codes are the ones meant, or all others are."""

    IN = "In"
    NOT_IN = "NotIn"


class PatternError(ValueError):
    """The text is not a pattern in RE2 syntax; the message says where it breaks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """An RE2 pattern. It is searched for, not matched against the whole; empty text never matches."""

    text: str
    compiled: Any = field(compare=False, repr=False)

    def found_in(self, text: str) -> bool:
        return bool(text) and self.allows(text)

    def allows(self, text: str) -> bool:
        """As `found_in`, but empty text is searched as well."""
        # A message may hold halves of characters (bytes that were no UTF-8), which RE2 cannot be given.
        return self.compiled.search(text.encode("utf-8", "replace").decode()) is not None


def compile_pattern(text: str) -> Pattern:
    """The pattern, ready to search. Raises PatternError with what is wrong with it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(text=text, compiled=re2.compile(text, options))
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else "not a pattern"
        raise PatternError(reason.decode() if isinstance(reason, bytes) else str(reason)) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a matcher recognised, in words, and the container it saw it at (empty: at the pod)."""

    what: str
    container: str = ""


class Matcher(Protocol):
    """Looks at an end. `ends` are the failed containers within the rule's scope, `signals` everything."""

    @property
    def kind(self) -> MatcherKind: ...

    def evidence(self, signals: Signals, ends: tuple[ContainerEnd, ...]) -> Evidence | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionMatcher:
    """Any listed condition: OOMKilled is a container's reason, the others are the pod's."""

    conditions: tuple[Condition, ...]

    @property
    def kind(self) -> MatcherKind:
        return MatcherKind.CONDITIONS

    def evidence(self, signals: Signals, ends: tuple[ContainerEnd, ...]) -> Evidence | None:
        for condition in self.conditions:
            if condition is not Condition.OOM_KILLED and signals.reason == condition:
                return Evidence(what=f"condition {condition}")
            for end in ends if condition is Condition.OOM_KILLED else ():
                if end.reason == condition:
                    return Evidence(what=f"condition {condition}", container=end.name)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class ExitCodeMatcher:
    """A failed container whose exit code is, or is not, one of the values."""

    operator: ExitCodeOperator
    values: frozenset[int]

    @property
    def kind(self) -> MatcherKind:
        return MatcherKind.EXIT_CODES

    def evidence(self, signals: Signals, ends: tuple[ContainerEnd, ...]) -> Evidence | None:
        for end in ends:
            if (end.exit_code in self.values) is (self.operator is ExitCodeOperator.IN):
                return Evidence(what=f"exit code {end.exit_code}", container=end.name)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TerminationMessageMatcher:
    """A failed container whose message has the pattern."""

    pattern: Pattern

    @property
    def kind(self) -> MatcherKind:
        return MatcherKind.TERMINATION_MESSAGE

    def evidence(self, signals: Signals, ends: tuple[ContainerEnd, ...]) -> Evidence | None:
        for end in ends:
            if self.pattern.found_in(end.message):
                return Evidence(what=f"pattern {self.pattern.text!r} in the message", container=end.name)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class PodErrorMatcher:
    """A pod-level message that has the pattern."""

    pattern: Pattern

    @property
    def kind(self) -> MatcherKind:
        return MatcherKind.POD_ERROR

    def evidence(self, signals: Signals, ends: tuple[ContainerEnd, ...]) -> Evidence | None:
        if self.pattern.found_in(signals.message):
            return Evidence(what=f"pattern {self.pattern.text!r} in the pod's message")
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class PodEventMatcher:
    """An event of that type, of that reason when one is given, whose message has the pattern."""

    pattern: Pattern
    type: str
    reason: str = ""

    @property
    def kind(self) -> MatcherKind:
        return MatcherKind.POD_EVENTS

    def evidence(self, signals: Signals, ends: tuple[ContainerEnd, ...]) -> Evidence | None:
        for event in signals.events:
            meant = event.type == self.type and self.reason in ("", event.reason)
            if meant and self.pattern.found_in(event.message):
                return Evidence(what=f"pattern {self.pattern.text!r} in a {event.type} event")
        return None
