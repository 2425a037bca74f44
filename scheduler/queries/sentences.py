"""The sentences of decisions, from their rows and the versions that decided."""

from collections.abc import Collection, Iterable
from uuid import UUID

from policies.decision import Verdict
from policies.wording import DecisionFacts, decision_sentence
from scheduler.models import Decision, RetryPolicyVersion
from scheduler.queries.policies import version_rows


def decision_sentences(decisions: Collection[Decision]) -> dict[UUID, str]:
    """Run id → what was decided about the run and why. One query, when any of them has a rule that matched.

    The decisions have their runs loaded.
    """
    wanted = {(each.policy_name, each.policy_version) for each in decisions if each.rule_index is not None}
    versions = version_rows(wanted) if wanted else []
    documents = {(row.policy_name, row.version): row for row in versions}
    return {
        each.run_id: decision_sentence(_facts(each, documents.get((each.policy_name, each.policy_version))))
        for each in decisions
    }


def with_sentences(decisions: Iterable[Decision]) -> list[tuple[Decision, str]]:
    """Each decision with its sentence, in their order."""
    listed = list(decisions)
    sentences = decision_sentences(listed)
    return [(each, sentences[each.run_id]) for each in listed]


def _facts(decision: Decision, version: RetryPolicyVersion | None) -> DecisionFacts:
    return DecisionFacts(
        verdict=Verdict(decision.verdict),
        policy=decision.policy_name,
        version=decision.policy_version,
        rule_index=decision.rule_index,
        rule_subcategory=_rule_subcategory(decision.rule_index, version),
        category=decision.run.category,
        policy_used=decision.policy_used_before,
        policy_limit=decision.policy_limit,
        global_used=decision.global_used_before,
        global_limit=decision.global_limit,
        memory_from=decision.memory_from_bytes,
        memory_to=decision.memory_to_bytes,
        avoided_nodes=tuple(decision.avoids_nodes),
        reason=decision.reason,
    )


def _rule_subcategory(index: int | None, version: RetryPolicyVersion | None) -> str:
    """What the rule that matched narrowed to; nothing where its version cannot be looked up any more."""
    rules = version.document.get("rules", []) if version else []
    return str(rules[index].get("onSubcategory", "")) if index is not None and index < len(rules) else ""
