"""The sentences people read about decisions, rules and ends: one place, from plain values, so that pages build them of rows.

A decision is one sentence in one order: rule, policy (version), category, retry n of m, change. Rules count from 0 in
values and from 1 in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.decision import GROWN_FITS_NO_NODE, NO_UNTRIED_NODE_FITS, Decision, Verdict
from policies.failures import Failure
from policies.policy import Action, MemoryBump, Policy, Rule
from policies.quantity import rounded_bytes

__all__ = [
    "DecisionFacts",
    "capped_sentence",
    "category_text",
    "decision_facts",
    "decision_sentence",
    "default_sentence",
    "limit_sentence",
    "memory_change",
    "retries_spent",
    "rule_name",
    "rule_sentence",
    "undecided_sentence",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionFacts:
    """What a sentence about a decision needs. Used retries are those before it.

    `rule_subcategory` is what the rule narrowed to, if it did. Memory is None where it did not change. `avoids` says that
    nodes are avoided even where their names are not given.
    """

    verdict: Verdict
    policy: str
    version: int | None = None
    rule_index: int | None = None
    rule_subcategory: str = ""
    category: str = ""
    policy_used: int = 0
    policy_limit: int = 0
    global_used: int = 0
    global_limit: int = 0
    memory_from: int | None = None
    memory_to: int | None = None
    avoided_nodes: tuple[str, ...] = ()
    avoids: bool = False
    reason: str = ""


def decision_facts(
    decision: Decision,
    policy: Policy,
    failure: Failure | None,
    *,
    version: int | None = None,
    memory_from: int | None = None,
    memory_to: int | None = None,
    avoided_nodes: Sequence[str] = (),
) -> DecisionFacts:
    """The facts of a decision just made, beside what carrying it out did to memory and nodes."""
    index = decision.rule_index
    return DecisionFacts(
        verdict=decision.verdict,
        policy=policy.name,
        version=version,
        rule_index=index,
        rule_subcategory="" if index is None else policy.rules[index].on_subcategory,
        category=failure.category if failure else "",
        policy_used=decision.policy_budget.used,
        policy_limit=decision.policy_budget.limit,
        global_used=decision.global_budget.used,
        global_limit=decision.global_budget.limit,
        memory_from=memory_from,
        memory_to=memory_to,
        avoided_nodes=tuple(avoided_nodes),
        avoids=decision.mutation.avoid_same_node,
        reason=decision.reason,
    )


def decision_sentence(facts: DecisionFacts) -> str:
    """What was decided and why, in one sentence."""
    policy = _policy_name(facts)
    match facts.verdict:
        case Verdict.NO_ERROR:
            return f"The run ended without error information, so {policy} could not judge it: no retry."
        case Verdict.FAIL_GLOBAL_LIMIT if facts.global_limit == 0:
            return f"The global limit is 0, which switches all retries off; {policy} was not asked."
        case Verdict.FAIL_GLOBAL_LIMIT:
            spent, limit = retries_spent(facts.global_limit), _use("global", _global(facts))
            return f"{spent.capitalize()} that any policy may grant: {limit}; {policy} was not asked."
        case Verdict.FAIL_RULE:
            return f"{_match(facts)}: fail, no retry."
        case Verdict.FAIL_DEFAULT:
            return f"{_match(facts)}, and its default is Fail: no retry."
        case Verdict.FAIL_POLICY_LIMIT:
            return f"{_granted(facts)}, but {retries_spent(facts.policy_limit)}: {_limits(facts)}."
        case Verdict.RETRY:
            return f"{_granted(facts)}: {', '.join([_retry_number(facts), *_changes(facts)])}."
        case Verdict.RETRY_UNSCHEDULABLE:
            return f"{_granted(facts)}: {_retry_number(facts)} was granted, but {_unplaceable(facts)}."


def _policy_name(facts: DecisionFacts) -> str:
    return facts.policy if facts.version is None else f"{facts.policy} (version {facts.version})"


def _match(facts: DecisionFacts) -> str:
    category = category_text(facts.category, facts.rule_subcategory)
    if facts.rule_index is not None:
        return f"{rule_name(facts.rule_index)} of {_policy_name(facts)} matched category {category}"
    if not facts.category:
        return f"No rule of {_policy_name(facts)} matches a failure without a category"
    return f"No rule of {_policy_name(facts)} matched category {category}"


def _granted(facts: DecisionFacts) -> str:
    return _match(facts) if facts.rule_index is not None else f"{_match(facts)}, and its default is Retry"


def _retry_number(facts: DecisionFacts) -> str:
    number = f"retry {facts.policy_used + 1} of"
    if facts.global_limit < facts.policy_limit:
        return f"{number} {facts.global_limit} (the global limit)"
    return f"{number} {facts.policy_limit}"


def _changes(facts: DecisionFacts) -> list[str]:
    changes = []
    if facts.memory_from is not None and facts.memory_to is not None:
        changes.append(memory_change(facts.memory_from, facts.memory_to))
    if facts.avoided_nodes or facts.avoids:
        changes.append(f"away from {_nodes(facts.avoided_nodes)}")
    return changes


def _nodes(names: Sequence[str]) -> str:
    if not names:
        return "every node this job failed on"
    if len(names) > 3:
        return f"the {len(names)} nodes this job failed on"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _unplaceable(facts: DecisionFacts) -> str:
    if facts.reason == GROWN_FITS_NO_NODE and facts.memory_from is not None and facts.memory_to is not None:
        return f"with {memory_change(facts.memory_from, facts.memory_to)} the job fits no node"
    if facts.reason == GROWN_FITS_NO_NODE:
        return "the grown job fits no node"
    if facts.reason == NO_UNTRIED_NODE_FITS:
        return "no node that it has not failed on fits the job"
    return "the changed job fits no node"


def _limits(facts: DecisionFacts) -> str:
    policy = _use("policy", (facts.policy_used, facts.policy_limit))
    return f"{policy}, {_use('global', _global(facts))}"


def _global(facts: DecisionFacts) -> tuple[int, int]:
    return facts.global_used, facts.global_limit


def _use(which: str, budget: tuple[int, int]) -> str:
    used, limit = budget
    if used > limit:  # a limit was lowered, or other policies granted more
        return f"{which} limit {limit:,}, {used:,} used"
    return f"{which} limit {used:,} of {limit:,}"


def retries_spent(limit: int) -> str:
    """That a limit is used up, in words: "both retries were spent"."""
    match limit:
        case 0:
            return "no retries are allowed"
        case 1:
            return "the one retry was spent"
        case 2:
            return "both retries were spent"
        case _:
            return f"all {limit:,} retries were spent"


def memory_change(from_bytes: int, to_bytes: int) -> str:
    """Memory before and after, as in: memory 64Mi → 128Mi."""
    return f"memory {rounded_bytes(from_bytes)} → {rounded_bytes(to_bytes)}"


def category_text(category: str, subcategory: str = "") -> str:
    """A category with its subcategory: "oom", "gpu/xid", or "none"."""
    if not category:
        return f"none/{subcategory}" if subcategory else "none"
    return f"{category}/{subcategory}" if subcategory else category


def rule_name(index: int) -> str:
    """A rule as people count: Rule 1 for index 0."""
    return f"Rule {index + 1}"


_UNDECIDED = {
    "flag_off": "retry policies are switched off",
    "no_policy": "the queue has none and there is no default policy",
    "gang": "members of a gang are not retried one by one",
    "fail_fast": "the job asks to fail fast",
    "lease_return": "the lease was given back, which is no failure of the job",
    "policy_unreadable": "the attached policy cannot be read. Publish it again, or detach it",
    "cancelled": "the job was being cancelled",
    "preempted": "the run was preempted",
}


def undecided_sentence(because: str) -> str:
    """Why no policy decided about a run that ended badly."""
    return f"No policy was asked: {_UNDECIDED.get(because, because.replace('_', ' '))}."


def rule_sentence(rule: Rule) -> str:
    """What a rule does, as in: Retries when the category is oom, with twice the memory."""
    when = f"when the category is {rule.on_category or 'missing'}"
    if rule.on_subcategory:
        when += f" and the subcategory {rule.on_subcategory}"
    if rule.action is Action.FAIL:
        return f"Fails at once {when}."
    changes = []
    if rule.mutation.memory is not None:
        changes.append(f"with {_more_memory(rule.mutation.memory)}")
    if rule.mutation.avoid_same_node:
        changes.append("away from every node the job failed on")
    return f"Retries {when}{', ' if changes else ''}{' and '.join(changes)}."


def _more_memory(bump: MemoryBump) -> str:
    if bump.static:
        return f"{bump.static} more memory"
    words = {2.0: "twice", 3.0: "three times", 4.0: "four times"}
    return f"{words.get(bump.factor, f'{bump.factor:.10g} times')} the memory"


def default_sentence(action: Action) -> str:
    """What happens when no rule matches."""
    return f"{'Fails' if action is Action.FAIL else 'Retries'} when no rule matches."


def limit_sentence(retry_limit: int) -> str:
    """What the retry limit allows."""
    if retry_limit == 0:
        return "The retry limit is 0, so nothing is retried."
    return f"Retries at most {'once' if retry_limit == 1 else f'{retry_limit:,} times'}."


def capped_sentence(retry_limit: int, global_limit: int) -> str:
    """What the global limit takes away from a policy; empty where it takes nothing."""
    if global_limit >= retry_limit:
        return ""
    times = {0: "nothing is retried", 1: "jobs are retried at most once"}.get(
        global_limit, f"jobs are retried at most {global_limit:,} times"
    )
    return (
        f"The global limit of {global_limit:,} is below this policy's limit of {retry_limit:,}, so {times}. "
        "Raise scheduling.retryPolicy.globalMaxRetries to let it have more."
    )
