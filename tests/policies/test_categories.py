"""Categories: what each matcher sees, what a match gives, and a configuration that is read strictly."""

import time
from typing import Any

import pytest

from policies.documents import DocumentInvalid, parse_categories
from policies.failures import (
    Categories,
    Classification,
    ContainerEnd,
    Disposition,
    Failure,
    InternalSubcategory,
    PodEvent,
    Signals,
    failure_text,
    internal_failure,
    kubernetes_reason,
    reported_message,
)
from policies.matchers import MatcherKind, compile_pattern

KILLED = ContainerEnd(name="main", exit_code=137, reason="OOMKilled")
INIT = ContainerEnd(name="fetch", exit_code=7, reason="Error", message="no route to host", is_init=True)
FINE = ContainerEnd(name="side", exit_code=0, reason="OOMKilled", message="all good")


def categories(*rules: dict[str, Any], **fields: Any) -> Categories:
    category = {"name": "found", "action": "Delete", "rules": list(rules)}
    return parse_categories({"enabled": True, "categories": [category], **fields})


@pytest.mark.parametrize(
    ("sentence", "rule", "signals", "what", "container"),
    [
        (
            "a condition of a container",
            {"onConditions": ["OOMKilled"]},
            Signals(containers=(KILLED,)),
            "condition OOMKilled",
            "main",
        ),
        (
            "a condition of the pod, whatever the scope",
            {"onConditions": ["Evicted"], "containerName": "other"},
            Signals(reason="Evicted"),
            "condition Evicted",
            "",
        ),
        (
            "an exit code of an init container",
            {"onExitCodes": {"operator": "In", "values": [7]}},
            Signals(containers=(INIT,)),
            "exit code 7",
            "fetch",
        ),
        (
            "any other exit code",
            {"onExitCodes": {"operator": "NotIn", "values": [7]}},
            Signals(containers=(INIT, KILLED)),
            "exit code 137",
            "main",
        ),
        (
            "a container's message",
            {"onTerminationMessage": {"pattern": "no route"}},
            Signals(containers=(INIT,)),
            "pattern 'no route' in the message",
            "fetch",
        ),
        (
            "the pod's message",
            {"onPodError": {"pattern": "pull.*denied"}},
            Signals(message="image pull was denied"),
            "pattern 'pull.*denied' in the pod's message",
            "",
        ),
        (
            "an event",
            {"onPodEvents": {"regexp": "^disk", "type": "Warning", "reason": "Evicted"}},
            Signals(events=(PodEvent(type="Warning", reason="Evicted", message="disk pressure"),)),
            "pattern '^disk' in a Warning event",
            "",
        ),
    ],
)
def test_every_matcher_says_what_it_recognised(
    sentence: str, rule: dict[str, Any], signals: Signals, what: str, container: str
) -> None:
    classification = categories(rule).classify(signals)
    assert classification.failure == Failure(category="found"), sentence
    assert classification.disposition is Disposition.DELETE
    assert classification.matched is not None
    assert (classification.matched.evidence.what, classification.matched.evidence.container) == (
        what,
        container,
    )


def test_a_match_gives_subcategory_and_hint_and_names_its_rule() -> None:
    found = categories(
        {"onExitCodes": {"operator": "In", "values": [1]}},
        {"onConditions": ["OOMKilled"], "subcategory": "limit", "hint": "Ask for more."},
    ).classify(Signals(containers=(KILLED,)))
    assert (found.failure.subcategory, found.hint) == ("limit", "Ask for more.")
    assert found.matched is not None
    assert (found.matched.rule_index, found.matched.matcher) == (1, MatcherKind.CONDITIONS)


def test_what_nothing_recognises_gets_the_default_and_is_retained() -> None:
    found = categories({"onConditions": ["Evicted"]}, defaultSubcategory="rest").classify(Signals())
    assert found == Classification(failure=Failure(category="", subcategory="rest"))


def test_a_container_that_ended_with_zero_is_not_seen() -> None:
    assert categories({"onConditions": ["OOMKilled"]}).classify(Signals(containers=(FINE,))).matched is None


def test_switched_off_nothing_is_classified_and_rules_are_not_checked() -> None:
    off = parse_categories({"enabled": False, "defaultCategory": "x", "categories": [{"name": ""}]})
    assert off.classify(Signals(containers=(KILLED,))) == Classification()
    assert off.names_with_disposition() == ()
    assert parse_categories(None) == Categories()


def test_an_executor_can_tell_every_category_it_may_give() -> None:
    named = categories({"onConditions": ["Evicted"]}, defaultCategory="other").names_with_disposition()
    assert named == (("found", Disposition.DELETE), ("other", Disposition.RETAIN))


def test_a_default_category_is_told_as_retained_though_it_is_one_whose_remains_are_deleted() -> None:
    named = categories({"onConditions": ["Evicted"]}, defaultCategory="found").names_with_disposition()
    assert named == (("found", Disposition.RETAIN),)


def test_every_problem_of_a_configuration_is_told_at_once() -> None:
    config = {
        "enabled": True,
        "defaultcategory": "x" * 64,
        "colour": "red",
        "categories": [
            {"name": "", "rules": []},
            {
                "name": "a",
                "action": "Keep",
                "rules": [
                    {"onConditions": ["OOMKilled", "Preempted"], "subcategory": "é" * 32},
                    {"onExitCodes": {"operator": "Is", "values": [2**31]}, "hint": 5},
                    {"onPodError": {"pattern": "(?=x)"}, "onPodEvents": {"regexp": "(", "type": "Odd"}},
                ],
            },
        ],
    }
    with pytest.raises(DocumentInvalid) as caught:
        parse_categories(config, path="application.errorCategories")
    found = [
        (problem.path.removeprefix("application.errorCategories."), problem.code)
        for problem in caught.value.problems
    ]
    assert found == [
        ("categories[1].rules[1].hint", "type"),
        ("categories[1].rules[1].onExitCodes.values[0]", "type"),
        ("colour", "unknown_field"),
        ("defaultCategory", "default_category_length"),
        ("categories[0].name", "category_name_required"),
        ("categories[0].rules", "rules_required"),
        ("categories[1].action", "action_known"),
        ("categories[1].rules[0].subcategory", "subcategory_length"),
        ("categories[1].rules[0].onConditions[1]", "condition_known"),
        ("categories[1].rules[1].onExitCodes.operator", "exit_code_operator"),
        ("categories[1].rules[2]", "one_matcher_only"),
        ("categories[1].rules[2].onPodError.pattern", "pod_error_regexp"),
        ("categories[1].rules[2].onPodEvents.regexp", "event_regexp"),
        ("categories[1].rules[2].onPodEvents.type", "event_type"),
    ]


def test_no_pattern_can_hang_whoever_reads_a_message() -> None:
    pattern, started = compile_pattern("(a+)+$"), time.monotonic()
    assert not pattern.found_in("a" * 100_000 + "!")
    assert time.monotonic() - started < 5


def test_a_message_that_was_no_text_can_be_searched() -> None:
    assert compile_pattern("end$").found_in("\udcff\x00 end")


def test_the_failure_text_has_a_line_per_failed_container_main_ones_first() -> None:
    signals = Signals(containers=(INIT, KILLED, FINE))
    text = (
        "Container main failed with exit code 137 because OOMKilled: \n"
        "Container fetch failed with exit code 7 because Error: no route to host\n"
    )
    assert failure_text(signals) == text
    assert signals.with_failure_text().message == text
    assert failure_text(Signals(containers=(KILLED,), message="evicted")) == "evicted"


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        (Signals(containers=(KILLED,), reason="Evicted"), "Evicted"),
        (Signals(containers=(INIT, KILLED)), "OOM"),
        (Signals(reason="DeadlineExceeded"), "DeadlineExceeded"),
        (Signals(containers=(INIT,)), "AppError"),
    ],
)
def test_the_cause_is_one_of_four_words(signals: Signals, reason: str) -> None:
    assert kubernetes_reason(signals) == reason


@pytest.mark.parametrize(
    ("message", "hint", "reported"), [("m", "h", "m\n\nh"), ("m", "", "m"), ("", "h", "h"), ("", "", "")]
)
def test_a_hint_follows_the_message_after_a_blank_line(message: str, hint: str, reported: str) -> None:
    assert reported_message(message, hint) == reported


def test_the_system_s_own_failures_have_their_category() -> None:
    failure = internal_failure(InternalSubcategory.NODE_FAILURE)
    assert failure == Failure(category="internal", subcategory="node-failure")
