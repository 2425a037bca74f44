"""Decide whether a failed run's job runs again: policy, failure and earlier failures in, one decision out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from policies.failures import Failure
from policies.policy import NO_MUTATION, Action, Mutation, Policy, Rule

__all__ = [
    "GROWN_FITS_NO_NODE",
    "NO_UNTRIED_NODE_FITS",
    "Budget",
    "Decision",
    "Verdict",
    "decide",
    "matching_rule",
]

GROWN_FITS_NO_NODE = "retry granted, but the job grown by the rule's memory bump fits no node"
NO_UNTRIED_NODE_FITS = "retry granted, but no untried node fits the job"


class Verdict(StrEnum):
    """How a decision came out: closed and few, fit for a column, a metric label and a page."""

    RETRY = "retry"
    FAIL_RULE = "fail_rule"
    FAIL_DEFAULT = "fail_default"
    FAIL_POLICY_LIMIT = "fail_policy_limit"
    FAIL_GLOBAL_LIMIT = "fail_global_limit"
    NO_ERROR = "no_error"
    RETRY_UNSCHEDULABLE = "retry_unschedulable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Retries used of a limit. `used` is the true number, even where it overshoots the limit."""

    used: int
    limit: int

    @property
    def spent(self) -> bool:
        return self.used >= self.limit

    def after_a_retry(self) -> Budget:
        return replace(self, used=self.used + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What was decided and why. Budgets are those before the decision; the rule index counts from 0.

    Only a retry carries a mutation out; `retry_unschedulable` keeps the one that was tried, for the record.
    """

    verdict: Verdict
    reason: str
    policy_budget: Budget
    global_budget: Budget
    rule_index: int | None = None
    mutation: Mutation = NO_MUTATION
    delay_seconds: float = 0.0

    @property
    def retries(self) -> bool:
        """Whether the job runs again."""
        return self.verdict is Verdict.RETRY

    @property
    def fails(self) -> bool:
        """Whether the job fails for good."""
        return not self.retries

    @property
    def policy_budget_after(self) -> Budget:
        return self.policy_budget.after_a_retry() if self.retries else self.policy_budget

    @property
    def global_budget_after(self) -> Budget:
        return self.global_budget.after_a_retry() if self.retries else self.global_budget

    def unschedulable(self, reason: str) -> Decision:
        """The decision recorded instead of this retry when the changed job fits no node."""
        return replace(self, verdict=Verdict.RETRY_UNSCHEDULABLE, reason=reason)


def decide(
    policy: Policy,
    failure: Failure | None,
    genuine_failures: Sequence[Failure | None],
    *,
    global_limit: int,
) -> Decision:
    """Decide about one failed run. Pure: the same arguments give the same decision.

    `failure` is None when nothing is known about the error. `genuine_failures` are all of the job's, oldest first, the
    one judged among them (a preempted run's is missing there). `global_limit` 0 switches all retries off.
    """
    used = max(len(genuine_failures) - 1, 0)
    undecided = Decision(
        verdict=Verdict.NO_ERROR,
        reason="no error information available",
        policy_budget=Budget(used=used, limit=policy.retry_limit),
        global_budget=Budget(used=used, limit=global_limit),
    )
    if failure is None:
        return undecided
    if undecided.global_budget.spent:
        return replace(
            undecided, verdict=Verdict.FAIL_GLOBAL_LIMIT, reason=_global_reason(undecided.global_budget)
        )
    return _by_rule_or_default(policy, failure, undecided)


def matching_rule(policy: Policy, failure: Failure) -> int | None:
    """The index of the first rule that matches, None when the default decides."""
    return next((index for index, rule in enumerate(policy.rules) if rule.matches(failure)), None)


def _by_rule_or_default(policy: Policy, failure: Failure, undecided: Decision) -> Decision:
    index = matching_rule(policy, failure)
    rule: Rule | None = None if index is None else policy.rules[index]
    action = policy.default_action if rule is None else rule.action
    judged = replace(
        undecided,
        rule_index=index,
        reason="no rule matched, using default action" if rule is None else f"matched rule: {action}",
    )
    if action is Action.FAIL:
        return replace(judged, verdict=Verdict.FAIL_DEFAULT if rule is None else Verdict.FAIL_RULE)
    if judged.policy_budget.spent:
        return replace(judged, verdict=Verdict.FAIL_POLICY_LIMIT, reason=_policy_reason(judged.policy_budget))
    return replace(judged, verdict=Verdict.RETRY, mutation=NO_MUTATION if rule is None else rule.mutation)


def _global_reason(budget: Budget) -> str:
    if budget.limit == 0:
        return "global max retries is 0, retries disabled"
    return f"global max retries exceeded ({budget.used}/{budget.limit})"


def _policy_reason(budget: Budget) -> str:
    return f"policy retry limit exceeded ({budget.used}/{budget.limit})"
