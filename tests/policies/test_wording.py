"""The sentences people read, whole."""

from dataclasses import replace

import pytest

from policies.decision import GROWN_FITS_NO_NODE, NO_UNTRIED_NODE_FITS, Verdict, decide
from policies.documents import policy_from_object
from policies.endings import Ending, headline
from policies.failures import Failure
from policies.policy import Action, MemoryBump, Mutation, Policy, Rule
from policies.wording import (
    DecisionFacts,
    category_text,
    decision_facts,
    decision_sentence,
    policy_sentences,
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


def test_a_policy_reads_as_a_sentence_per_rule() -> None:
    grow = Mutation(memory=MemoryBump(factor=2.0))
    add_and_avoid = Mutation(memory=MemoryBump(static="1Gi"), avoid_same_node=True)
    policy = Policy(
        name="p",
        retry_limit=2,
        default_action=Action.FAIL,
        rules=(
            Rule(action=Action.RETRY, on_category="oom", mutation=grow),
            Rule(action=Action.RETRY, on_category="gpu", on_subcategory="xid", mutation=add_and_avoid),
            Rule(action=Action.RETRY, on_category="net"),
            Rule(action=Action.FAIL, on_category="user-code", mutation=grow),
        ),
    )
    assert policy_sentences(policy) == (
        "Retries when the category is oom, with twice the memory.",
        "Retries when the category is gpu and the subcategory xid, with 1Gi more memory and "
        "away from every node the job failed on.",
        "Retries when the category is net.",
        "Fails at once when the category is user-code.",
        "Fails when no rule matches.",
        "Retries at most 2 times.",
    )


@pytest.mark.parametrize(
    ("category", "subcategory", "text"), [("oom", "", "oom"), ("gpu", "xid", "gpu/xid"), ("", "", "none")]
)
def test_a_category_is_written_with_its_subcategory(category: str, subcategory: str, text: str) -> None:
    assert category_text(category, subcategory) == text


FAILED = Ending(state="failed", runs=3, category="oom", cause="OOM", again=True, decision=SPENT)


@pytest.mark.parametrize(
    ("ending", "line"),
    [
        (FAILED, "Failed: out of memory again, and both retries were spent."),
        (
            replace(FAILED, category="gpu", cause="AppError", again=False),
            "Failed: category gpu, and both retries were spent.",
        ),
        (
            replace(FAILED, decision=replace(SPENT, verdict=Verdict.FAIL_RULE), again=False),
            "Failed: out of memory, which rule 1 of oom-grow does not retry.",
        ),
        (
            replace(
                FAILED,
                decision=replace(RETRY, verdict=Verdict.RETRY_UNSCHEDULABLE, reason=GROWN_FITS_NO_NODE),
            ),
            "Failed: out of memory again, and with 128Mi it fits no node.",
        ),
        (
            Ending(
                state="failed",
                category="internal",
                subcategory="lease-expired",
                undecided_because="no_policy",
            ),
            "Failed: its executor was lost. No policy was asked: "
            "the queue has none and there is no default policy.",
        ),
        (Ending(state="failed", exit_code=3), "Failed: exit code 3, no category."),
        (Ending(state="succeeded"), "Succeeded on its first run."),
        (Ending(state="succeeded", runs=2), "Succeeded on run 2, after 1 retry."),
        (Ending(state="cancelled", by="alice", reason="wrong input"), "Cancelled by alice: wrong input."),
        (Ending(state="rejected", reason="No node has 1Ti."), "Rejected: No node has 1Ti."),
        (Ending(state="running"), ""),
    ],
)
def test_why_a_job_ended_is_one_line(ending: Ending, line: str) -> None:
    assert headline(ending) == line
