"""From the signals of an end to its failure: categories, their rules, and what becomes of the remains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from policies.matchers import Evidence, Matcher, MatcherKind
from policies.signals import (
    ContainerEnd,
    PodEvent,
    Signals,
    failure_text,
    kubernetes_reason,
    reported_message,
)

__all__ = [
    "INTERNAL",
    "UNCLASSIFIED",
    "Categories",
    "Category",
    "CategoryRule",
    "Classification",
    "ContainerEnd",
    "Disposition",
    "Failure",
    "InternalSubcategory",
    "MatchedBy",
    "PodEvent",
    "Signals",
    "failure_text",
    "internal_failure",
    "kubernetes_reason",
    "reported_message",
]

INTERNAL = "internal"
"""The category of failures that the system itself gives, never a category's rule."""


class InternalSubcategory(StrEnum):
    """What the system itself reports, each under the category `internal`."""

    JOB_CREATION_FAILED = "job-creation-failed"
    POD_MISSING = "pod-missing"
    STUCK_TERMINATING = "stuck-terminating"
    EXTERNALLY_DELETED = "externally-deleted"
    ISSUE_HANDLER_ERROR = "issue-handler-error"
    ACTIVE_DEADLINE = "active-deadline"
    LEASE_EXPIRED = "lease-expired"
    MAX_RUNS_EXCEEDED = "max-runs-exceeded"
    JOB_REJECTED = "job-rejected"
    NODE_FAILURE = "node-failure"


class Disposition(StrEnum):
    """What becomes of the remains of a failed run (its pod, or its folder) before the failure is reported."""

    RETAIN = "Retain"
    DELETE = "Delete"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What a run failed of. Either text may be empty: a failure can have no category."""

    category: str = ""
    subcategory: str = ""


UNCLASSIFIED = Failure()


def internal_failure(subcategory: InternalSubcategory) -> Failure:
    """The failure that the system itself reports under that subcategory."""
    return Failure(category=INTERNAL, subcategory=str(subcategory))


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchedBy:
    """Which rule of which category recognised the end, and by what. The index counts from 0."""

    category: str
    rule_index: int
    matcher: MatcherKind
    evidence: Evidence


@dataclass(frozen=True, kw_only=True, slots=True)
class Classification:
    """The one result that decides about the remains and is reported. `matched` is None for the defaults."""

    failure: Failure = UNCLASSIFIED
    disposition: Disposition = Disposition.RETAIN
    hint: str = ""
    matched: MatchedBy | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryRule:
    """One matcher, what it is limited to, and what a match adds to the failure."""

    matcher: Matcher
    container_name: str = ""
    subcategory: str = ""
    hint: str = ""

    def evidence(self, signals: Signals) -> Evidence | None:
        """What this rule recognises in the signals, None when nothing. The scope limits container matchers only."""
        ends = signals.failed_containers
        if self.container_name:
            ends = tuple(end for end in ends if end.name == self.container_name)
        return self.matcher.evidence(signals, ends)


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    """A named kind of failure: its rules are alternatives."""

    name: str
    rules: tuple[CategoryRule, ...]
    disposition: Disposition = Disposition.RETAIN


@dataclass(frozen=True, kw_only=True, slots=True)
class Categories:
    """The categories of an executor, in order. Switched off they give every failure no category at all."""

    enabled: bool = False
    categories: tuple[Category, ...] = ()
    default: Failure = UNCLASSIFIED

    def classify(self, signals: Signals | None) -> Classification:
        """The first rule that recognises the end, over all categories; else the default, retained.

        A failed run is classified by `signals.with_failure_text()`, once, with everything known.
        """
        if signals is None or not self.enabled:
            return Classification()
        for category in self.categories:
            for index, rule in enumerate(category.rules):
                evidence = rule.evidence(signals)
                if evidence is not None:
                    return _classified(category, index, evidence)
        return Classification(failure=self.default)

    def names_with_disposition(self) -> tuple[tuple[str, Disposition], ...]:
        """Every category that failures can get here, in order, the default last; none when switched off.

        The default is told as retained, whatever its name is given elsewhere: what no rule matches is kept.
        """
        if not self.enabled:
            return ()
        named = {category.name: category.disposition for category in self.categories}
        if self.default.category:
            named[self.default.category] = Disposition.RETAIN
        return tuple(named.items())


def _classified(category: Category, index: int, evidence: Evidence) -> Classification:
    rule = category.rules[index]
    return Classification(
        failure=Failure(category=category.name, subcategory=rule.subcategory),
        disposition=category.disposition,
        hint=rule.hint,
        matched=MatchedBy(
            category=category.name, rule_index=index, matcher=rule.matcher.kind, evidence=evidence
        ),
    )
