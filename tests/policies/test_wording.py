"""The sentences people read, whole."""

from dataclasses import replace

import pytest

from policies.decision import GROWN_FITS_NO_NODE, NO_UNTRIED_NODE_FITS, Verdict, decide
from policies.documents import policy_from_object
from policies.failures import Failure
from policies.policy import Action, MemoryBump, Mutation, Rule
from policies.wording import (
    DecisionFacts,
    capped_sentence,
    category_text,
    decision_facts,
    decision_sentence,
    default_sentence,
    limit_sentence,
    rule_sentence,
    undecided_sentence,
)

MI = 2**20
RETRY = DecisionFacts(
    verdict=Verdict.RETRY,
    policy="oom-grow",
    version=3,
    rule_index=0,
    category="oom",
    policy_limit=2,
    global_limit=5,
    memory_from=64 * MI,
    memory_to=128 * MI,
)
UNMATCHED = replace(RETRY, rule_index=None, category="disk", memory_from=None, memory_to=None)
SPENT = replace(RETRY, verdict=Verdict.FAIL_POLICY_LIMIT, policy_used=2, global_used=2)
RULE = "Rule 1 of oom-grow (version 3) matched category oom"
NO_RULE = "No rule of oom-grow (version 3) matched category disk"


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (RETRY, f"{RULE}: retry 1 of 2, memory 64Mi → 128Mi."),
        (replace(RETRY, policy_used=1), f"{RULE}: retry 2 of 2, memory 64Mi → 128Mi."),
        (replace(RETRY, global_limit=1), f"{RULE}: retry 1 of 1 (the global limit), memory 64Mi → 128Mi."),
        (
            replace(RETRY, memory_from=None, avoids=True),
            f"{RULE}: retry 1 of 2, away from every node this job failed on.",
        ),
        (
            replace(RETRY, memory_from=None, avoided_nodes=("n1", "n2")),
            f"{RULE}: retry 1 of 2, away from n1 and n2.",
        ),
        (
            replace(RETRY, rule_subcategory="limit", memory_from=None),
            "Rule 1 of oom-grow (version 3) matched category oom/limit: retry 1 of 2.",
        ),
        (
            replace(RETRY, version=None),
            "Rule 1 of oom-grow matched category oom: retry 1 of 2, memory 64Mi → 128Mi.",
        ),
        (SPENT, f"{RULE}, but both retries were spent: policy limit 2 of 2, global limit 2 of 5."),
        (
            replace(SPENT, policy_limit=1),
            f"{RULE}, but the one retry was spent: policy limit 1, 2 used, global limit 2 of 5.",
        ),
        (
            replace(SPENT, policy_used=0, policy_limit=0, global_used=0),
            f"{RULE}, but no retries are allowed: policy limit 0 of 0, global limit 0 of 5.",
        ),
        (replace(RETRY, verdict=Verdict.FAIL_RULE), f"{RULE}: fail, no retry."),
        (replace(UNMATCHED, verdict=Verdict.FAIL_DEFAULT), f"{NO_RULE}, and its default is Fail: no retry."),
        (
            replace(UNMATCHED, verdict=Verdict.FAIL_DEFAULT, category=""),
            "No rule of oom-grow (version 3) matches a failure without a category, and its default is Fail: no retry.",
        ),
        (UNMATCHED, f"{NO_RULE}, and its default is Retry: retry 1 of 2."),
        (
            replace(UNMATCHED, verdict=Verdict.FAIL_POLICY_LIMIT, policy_used=2, global_used=2),
            f"{NO_RULE}, and its default is Retry, but both retries were spent: "
            "policy limit 2 of 2, global limit 2 of 5.",
        ),
        (
            replace(RETRY, verdict=Verdict.FAIL_GLOBAL_LIMIT, global_used=5),
            "All 5 retries were spent that any policy may grant: global limit 5 of 5; "
            "oom-grow (version 3) was not asked.",
        ),
        (
            replace(RETRY, verdict=Verdict.FAIL_GLOBAL_LIMIT, global_limit=0),
            "The global limit is 0, which switches all retries off; oom-grow (version 3) was not asked.",
        ),
        (
            replace(RETRY, verdict=Verdict.NO_ERROR),
            "The run ended without error information, so oom-grow (version 3) could not judge it: no retry.",
        ),
        (
            replace(RETRY, verdict=Verdict.RETRY_UNSCHEDULABLE, reason=GROWN_FITS_NO_NODE),
            f"{RULE}: retry 1 of 2 was granted, but with memory 64Mi → 128Mi the job fits no node.",
        ),
        (
            replace(RETRY, verdict=Verdict.RETRY_UNSCHEDULABLE, reason=NO_UNTRIED_NODE_FITS),
            f"{RULE}: retry 1 of 2 was granted, but no node that it has not failed on fits the job.",
        ),
    ],
)
def test_a_decision_is_one_sentence(facts: DecisionFacts, sentence: str) -> None:
    assert decision_sentence(facts) == sentence


def test_the_facts_of_a_decision_just_made_say_the_same_as_stored_ones() -> None:
    rule = {"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2}}}}
    policy = policy_from_object(
        {"name": "oom-grow", "retryLimit": 2, "defaultAction": "Fail", "rules": [rule]}
    )
    failure = Failure(category="oom", subcategory="limit")
    decision = decide(policy, failure, [failure], global_limit=5)
    facts = decision_facts(decision, policy, failure, version=3, memory_from=64 * MI, memory_to=128 * MI)
    assert decision_sentence(facts) == decision_sentence(RETRY)


@pytest.mark.parametrize(
    "because",
    [
        "flag_off",
        "no_policy",
        "gang",
        "fail_fast",
        "lease_return",
        "policy_unreadable",
        "cancelled",
        "preempted",
    ],
)
def test_why_a_run_was_left_undecided_is_said(because: str) -> None:
    sentence = undecided_sentence(because)
    assert sentence.startswith("No policy was asked: ")
    assert "_" not in sentence


GROW = Mutation(memory=MemoryBump(factor=2.0))
ADD_AND_AVOID = Mutation(memory=MemoryBump(static="1Gi"), avoid_same_node=True)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            Rule(action=Action.RETRY, on_category="oom", mutation=GROW),
            "Retries when the category is oom, with twice the memory.",
        ),
        (
            Rule(action=Action.RETRY, on_category="gpu", on_subcategory="xid", mutation=ADD_AND_AVOID),
            "Retries when the category is gpu and the subcategory xid, with 1Gi more memory and "
            "away from every node the job failed on.",
        ),
        (Rule(action=Action.RETRY, on_category="net"), "Retries when the category is net."),
        (
            Rule(action=Action.FAIL, on_category="user-code", mutation=GROW),
            "Fails at once when the category is user-code.",
        ),
    ],
)
def test_a_rule_reads_as_a_sentence(rule: Rule, sentence: str) -> None:
    assert rule_sentence(rule) == sentence


def test_the_default_and_the_limit_read_as_sentences() -> None:
    assert default_sentence(Action.FAIL) == "Fails when no rule matches."
    assert default_sentence(Action.RETRY) == "Retries when no rule matches."
    assert limit_sentence(0) == "The retry limit is 0, so nothing is retried."
    assert limit_sentence(1) == "Retries at most once."
    assert limit_sentence(2_000) == "Retries at most 2,000 times."


@pytest.mark.parametrize(
    ("category", "subcategory", "text"), [("oom", "", "oom"), ("gpu", "xid", "gpu/xid"), ("", "", "none")]
)
def test_a_category_is_written_with_its_subcategory(category: str, subcategory: str, text: str) -> None:
    assert category_text(category, subcategory) == text


@pytest.mark.parametrize(
    ("limit", "cap", "ending"),
    [
        (3, 0, "nothing is retried"),
        (3, 1, "jobs are retried at most once"),
        (9, 4, "jobs are retried at most 4 times"),
    ],
)
def test_a_global_limit_below_a_policys_own_is_told(limit: int, cap: int, ending: str) -> None:
    told = capped_sentence(limit, cap)
    assert told.startswith(f"The global limit of {cap} is below this policy's limit of {limit}, so {ending}.")


def test_a_global_limit_that_takes_nothing_is_not_told() -> None:
    assert capped_sentence(3, 3) == capped_sentence(0, 0) == ""
