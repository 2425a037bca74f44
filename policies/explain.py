"""Explain a decision: every rule, whether it matched and by what, beside the decision itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from policies.decision import Decision, Verdict, decide
from policies.failures import Failure
from policies.policy import Policy, Rule
from policies.wording import rule_name

__all__ = ["Explanation", "RuleOutcome", "RuleStep", "explain"]


class RuleOutcome(StrEnum):
    """What a rule had to say about a failure."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleStep:
    """One rule in a decision. The index counts from 0; `why` is a sentence."""

    index: int
    rule: Rule
    outcome: RuleOutcome
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """A decision with a step for every rule of the policy, in order."""

    steps: tuple[RuleStep, ...]
    decision: Decision


def explain(
    policy: Policy,
    failure: Failure | None,
    genuine_failures: Sequence[Failure | None],
    *,
    global_limit: int,
) -> Explanation:
    """The decision that `decide` makes of the same arguments, and what each rule had to do with it."""
    decision = decide(policy, failure, genuine_failures, global_limit=global_limit)
    steps = (_step(index, rule, failure, decision) for index, rule in enumerate(policy.rules))
    return Explanation(steps=tuple(steps), decision=decision)


def _step(index: int, rule: Rule, failure: Failure | None, decision: Decision) -> RuleStep:
    gate = _gate_before_the_rules(decision)
    decided = decision.rule_index
    if failure is None or gate:
        outcome, why = RuleOutcome.NOT_ASKED, gate
    elif decided is not None and index > decided:
        outcome, why = (
            RuleOutcome.NOT_ASKED,
            f"{rule_name(decided)} matched before; the first that matches decides.",
        )
    elif index == decided:
        outcome, why = RuleOutcome.MATCHED, _why_matched(rule)
    else:
        outcome, why = RuleOutcome.NOT_MATCHED, _why_not(rule, failure)
    return RuleStep(index=index, rule=rule, outcome=outcome, why=why)


def _gate_before_the_rules(decision: Decision) -> str:
    if decision.verdict is Verdict.NO_ERROR:
        return "Nothing is known about the error, so no rule is asked."
    if decision.verdict is not Verdict.FAIL_GLOBAL_LIMIT:
        return ""
    limit = decision.global_budget.limit
    if limit == 0:
        return "The global limit is 0, so no rule is asked."
    return f"The global limit of {limit} is spent, so no rule is asked."


def _why_matched(rule: Rule) -> str:
    if rule.on_subcategory:
        return f"Category {rule.on_category} and subcategory {rule.on_subcategory} are equal."
    return f"Category {rule.on_category} is equal, any subcategory."


def _why_not(rule: Rule, failure: Failure) -> str:
    if not failure.category:
        return "The failure has no category, and no rule matches that."
    if failure.category != rule.on_category:
        return f"Category is {failure.category}, not {rule.on_category}."
    return f"Subcategory is {failure.subcategory or 'empty'}, not {rule.on_subcategory}."
