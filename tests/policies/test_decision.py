"""Decide: gates in order, budgets that count retries, and what a decision says about itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.decision import GROWN_FITS_NO_NODE, Budget, Decision, Verdict, decide
from policies.explain import RuleOutcome, explain
from policies.failures import Failure
from policies.policy import Action, MemoryBump, Mutation, Policy, Rule

OOM = Failure(category="oom", subcategory="limit")
DISK = Failure(category="disk")
GROW = Mutation(memory=MemoryBump(factor=2.0))
RULES = (
    Rule(action=Action.RETRY, on_category="oom", mutation=GROW),
    Rule(action=Action.FAIL, on_category="user-code"),
    Rule(action=Action.RETRY, on_category="gpu", on_subcategory="xid"),
)
POLICY = Policy(name="oom-grow", retry_limit=2, default_action=Action.FAIL, rules=RULES)


def decision(failure: Failure | None = OOM, *, failures: int = 1, global_limit: int = 5) -> Decision:
    return decide(POLICY, failure, [failure] * failures, global_limit=global_limit)


@pytest.mark.parametrize(
    ("sentence", "failure", "failures", "global_limit", "verdict"),
    [
        ("the first failure of a Retry rule runs again", OOM, 1, 5, Verdict.RETRY),
        ("the last allowed retry is granted", OOM, 2, 5, Verdict.RETRY),
        ("a spent policy limit ends it", OOM, 3, 5, Verdict.FAIL_POLICY_LIMIT),
        ("a spent global limit is found before the rules", OOM, 3, 2, Verdict.FAIL_GLOBAL_LIMIT),
        ("a global limit of 0 switches retries off", OOM, 1, 0, Verdict.FAIL_GLOBAL_LIMIT),
        ("nothing known about the error comes first of all", None, 9, 0, Verdict.NO_ERROR),
        ("a Fail rule fails at once", Failure(category="user-code"), 1, 5, Verdict.FAIL_RULE),
        (
            "a Fail rule is named even when the limit is spent",
            Failure(category="user-code"),
            4,
            5,
            "fail_rule",
        ),
        ("what no rule matches takes the default", DISK, 1, 5, Verdict.FAIL_DEFAULT),
        ("a failure without a category takes the default", Failure(), 1, 5, Verdict.FAIL_DEFAULT),
        ("a subcategory that differs does not match", Failure(category="gpu"), 1, 5, Verdict.FAIL_DEFAULT),
        ("the judged run may be missing from the failures", OOM, 0, 5, Verdict.RETRY),
    ],
)
def test_verdicts(
    sentence: str, failure: Failure | None, failures: int, global_limit: int, verdict: str
) -> None:
    assert decision(failure, failures=failures, global_limit=global_limit).verdict == verdict, sentence


def test_a_retry_carries_rule_mutation_and_budgets() -> None:
    assert decision(failures=2) == Decision(
        verdict=Verdict.RETRY,
        reason="matched rule: Retry",
        rule_index=0,
        policy_budget=Budget(used=1, limit=2),
        global_budget=Budget(used=1, limit=5),
        mutation=GROW,
        delay_seconds=0.0,
    )


def test_a_retry_spends_one_of_both_budgets_and_a_failure_none() -> None:
    retry, failed = decision(failures=1), decision(failures=3)
    assert (retry.policy_budget_after, retry.global_budget_after) == (
        Budget(used=1, limit=2),
        Budget(used=1, limit=5),
    )
    assert (failed.policy_budget_after, failed.global_budget_after) == (
        failed.policy_budget,
        failed.global_budget,
    )


def test_a_retry_that_fits_nowhere_is_a_failure_and_spends_nothing() -> None:
    refused = decision().unschedulable(GROWN_FITS_NO_NODE)
    assert (refused.verdict, refused.retries, refused.fails) == (Verdict.RETRY_UNSCHEDULABLE, False, True)
    assert refused.policy_budget_after == Budget(used=0, limit=2)
    assert refused.reason == GROWN_FITS_NO_NODE


def test_a_decision_that_fails_carries_no_mutation() -> None:
    assert not decision(failures=3).mutation


def test_an_explanation_says_of_every_rule_what_it_had_to_do_with_it() -> None:
    failure = Failure(category="user-code")
    explanation = explain(POLICY, failure, [failure], global_limit=5)
    assert [(step.outcome, step.why) for step in explanation.steps] == [
        (RuleOutcome.NOT_MATCHED, "Category is user-code, not oom."),
        (RuleOutcome.MATCHED, "Category user-code is equal, any subcategory."),
        (RuleOutcome.NOT_ASKED, "Rule 2 matched before; the first that matches decides."),
    ]
    assert explanation.decision == decision(failure)


@pytest.mark.parametrize(
    ("failure", "global_limit", "why"),
    [
        (None, 5, "Nothing is known about the error, so no rule is asked."),
        (OOM, 0, "The global limit is 0, so no rule is asked."),
    ],
)
def test_an_explanation_names_the_gate_before_the_rules(
    failure: Failure | None, global_limit: int, why: str
) -> None:
    steps = explain(POLICY, failure, [failure], global_limit=global_limit).steps
    assert {(step.outcome, step.why) for step in steps} == {(RuleOutcome.NOT_ASKED, why)}


def test_an_explanation_tells_a_subcategory_that_differs() -> None:
    failure = Failure(category="gpu")
    steps = explain(POLICY, failure, [failure], global_limit=5).steps
    assert steps[2].why == "Subcategory is empty, not xid."


NAMES = st.sampled_from(["", "oom", "gpu", "disk"])
FAILURES = st.builds(Failure, category=NAMES, subcategory=st.sampled_from(["", "xid"]))
SOME_RULES = st.builds(
    Rule,
    action=st.sampled_from(Action),
    on_category=st.sampled_from(["oom", "gpu", "disk"]),
    on_subcategory=st.sampled_from(["", "xid"]),
)
POLICIES = st.builds(
    Policy,
    name=st.just("p"),
    retry_limit=st.integers(0, 6),
    default_action=st.sampled_from(Action),
    rules=st.lists(SOME_RULES, max_size=4).map(tuple),
)


@given(POLICIES, FAILURES, st.integers(0, 8), st.integers(0, 8))
def test_more_failures_never_turn_a_failure_into_a_retry(
    policy: Policy, failure: Failure, failures: int, global_limit: int
) -> None:
    now = decide(policy, failure, [failure] * failures, global_limit=global_limit)
    later = decide(policy, failure, [failure] * (failures + 1), global_limit=global_limit)
    assert now.retries or not later.retries


@given(POLICIES, FAILURES, st.integers(0, 8))
def test_a_job_that_keeps_failing_gets_as_many_retries_as_the_smaller_limit_allows(
    policy: Policy, failure: Failure, global_limit: int
) -> None:
    failures: list[Failure] = [failure]
    while decide(policy, failure, failures, global_limit=global_limit).retries:
        failures.append(failure)
    granted = len(failures) - 1
    assert granted in (0, min(policy.retry_limit, global_limit))


@given(POLICIES, FAILURES, st.integers(0, 8), st.integers(0, 8))
def test_explaining_never_changes_the_decision(
    policy: Policy, failure: Failure, failures: int, global_limit: int
) -> None:
    history = [failure] * failures
    explanation = explain(policy, failure, history, global_limit=global_limit)
    assert explanation.decision == decide(policy, failure, history, global_limit=global_limit)
    matched = [step.index for step in explanation.steps if step.outcome is RuleOutcome.MATCHED]
    assert matched == ([] if explanation.decision.rule_index is None else [explanation.decision.rule_index])
