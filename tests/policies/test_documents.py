"""Policy documents: every problem at once, with its path, code and line; and back without loss."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.documents import (
    DocumentInvalid,
    parse_policy_document,
    policy_document,
    policy_from_json,
    policy_from_object,
    policy_yaml,
)
from policies.policy import Action, MemoryBump, Mutation, Policy, Rule

HEAD = "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\n"
OOM_GROW = f"""{HEAD}name: oom-grow
retryLimit: 2
defaultAction: Fail
rules:
  - action: Retry
    onCategory: oom
    mutate: {{resources: {{memory: {{factor: 2}}}}}}
"""
BROKEN = f"""{HEAD}name: Oom
retry_limit: 2
retryLimit: "2"
rules:
  - action: Skip
    onCategory: 5
  - onSubcategory: kernel
    mutate:
      resources:
        memory:
          static: many
        cpu: {{factor: 2}}
defaultAction: Fail
defaultaction: Retry
"""


def problems(text: str, *, envelope_required: bool = True) -> list[tuple[str, str, int | None]]:
    with pytest.raises(DocumentInvalid) as caught:
        parse_policy_document(text, envelope_required=envelope_required)
    return [(problem.path, problem.code, problem.line) for problem in caught.value.problems]


def test_the_story_s_policy_is_read() -> None:
    assert parse_policy_document(OOM_GROW) == Policy(
        name="oom-grow",
        retry_limit=2,
        default_action=Action.FAIL,
        rules=(
            Rule(
                action=Action.RETRY,
                on_category="oom",
                mutation=Mutation(memory=MemoryBump(factor=2.0)),
            ),
        ),
    )


def test_every_problem_is_told_at_once_with_its_path_and_line() -> None:
    assert problems(BROKEN) == [
        ("name", "name_pattern", 3),
        ("retry_limit", "unknown_field", 4),
        ("retryLimit", "type", 5),
        ("rules[0].action", "action_known", 7),
        ("rules[0].onCategory", "type", 8),
        ("rules[1].action", "action_required", 9),
        ("rules[1].onCategory", "category_required", 9),
        ("rules[1].mutate.resources.memory", "static_quantity", 12),
        ("rules[1].mutate.resources.cpu", "unknown_field", 14),
        ("defaultaction", "duplicate_field", 16),
    ]


def test_a_problem_says_the_fix() -> None:
    with pytest.raises(DocumentInvalid, match=r"retry_limit, line 4: .* Did you mean retryLimit\?"):
        parse_policy_document(BROKEN)


@pytest.mark.parametrize(
    ("sentence", "text", "code", "line"),
    [
        ("an anchor", f"{HEAD}name: &a p1\ndefaultAction: Fail\n", "anchor_refused", 3),
        ("an alias", f"{HEAD}name: *a\ndefaultAction: Fail\n", "alias_refused", 3),
        ("a tag", f"{HEAD}name: !!str p1\ndefaultAction: Fail\n", "tag_refused", 3),
        ("a tag of Python", f"{HEAD}name: !!python/name:os.system p1\n", "tag_refused", 3),
        ("a merge key", f"{HEAD}<<: {{name: p1}}\n", "merge_refused", 3),
        ("a second document", f"{OOM_GROW}---\n{OOM_GROW}", "one_document", 10),
        ("a list as key", f"{HEAD}? [name]\n: p1\n", "key_invalid", 3),
        ("a NUL", f'{HEAD}name: "a\\0b"\n', "text_invalid", 3),
        ("an open bracket", f"{HEAD}rules: [\n", "syntax", 4),
        ("brackets without end", "[" * 900, "too_deep", 1),
        ("braces without end", '{"a":' * 40_000, "too_deep", None),
        ("keys without end", f"{HEAD}name: {'? ' * 100_000}", "syntax", 3),
        ("more values than a policy has", f"{HEAD}rules: [{'a,' * 30_000}]\n", "too_large", 3),
        ("a quarter of a megabyte", f"{HEAD}name: {'a' * 300_000}\n", "too_large", None),
        ("half a character in JSON", '{"name": "\\ud800"}', "text_invalid", None),
        ("nothing", "", "present", None),
        ("only a comment", "# nothing\n", "present", None),
        ("a list", "- name: p1\n", "type", 1),
        ("a word", "policy\n", "type", 1),
    ],
)
def test_what_could_be_misunderstood_or_choke_a_reader_is_refused(
    sentence: str, text: str, code: str, line: int | None
) -> None:
    assert [(found[1], found[2]) for found in problems(text)] == [(code, line)], sentence


def test_another_kind_of_resource_is_named_and_nothing_else_is_said() -> None:
    assert problems("apiVersion: armadaproject.io/v1beta1\nkind: Queue\npriorityFactor: 1\n") == [
        ("kind", "kind_known", 2)
    ]


def test_the_extensions_version_does_not_exist_yet() -> None:
    text = OOM_GROW.replace("armadaproject.io/v1beta1", "tack/v1").replace(
        "factor: 2", "factor: 2, max: 64Gi"
    )
    assert problems(text) == [
        ("apiVersion", "apiVersion_known", 1),
        ("rules[0].mutate.resources.memory.max", "unknown_field", 9),
    ]


def test_version_and_kind_may_be_left_out_over_rest_but_not_in_a_file() -> None:
    text = OOM_GROW.removeprefix(HEAD)
    assert parse_policy_document(text, envelope_required=False) == parse_policy_document(OOM_GROW)
    assert [found[1] for found in problems(text)] == ["apiVersion_required", "kind_required"]


def test_the_letter_case_of_field_names_is_forgiven_and_nothing_else() -> None:
    shouted = OOM_GROW.replace("retryLimit", "RETRYLIMIT").replace("onCategory", "oncategory")
    assert parse_policy_document(shouted) == parse_policy_document(OOM_GROW)
    assert problems(OOM_GROW.replace("kind: RetryPolicy", "kind: retrypolicy")) == [("kind", "kind_known", 2)]


@pytest.mark.parametrize(
    "word", ["yes", "No", "on", "y", "~", "null", "1e9", "0x10", "010", "5", ".5", "1_000"]
)
def test_a_word_that_yaml_takes_for_something_else_is_no_name(word: str) -> None:
    assert [found[0] for found in problems(f"{HEAD}name: {word}\ndefaultAction: Fail\n")] == ["name"]


@pytest.mark.parametrize("text", ["2.0", "2", "0x2", "2e0"])
def test_a_whole_number_may_be_written_in_every_way_a_file_allows(text: str) -> None:
    policy = parse_policy_document(f"{HEAD}name: p1\nretryLimit: {text}\ndefaultAction: Fail\n")
    assert policy.retry_limit == 2


@pytest.mark.parametrize("factor", [".inf", "-.inf", ".nan", "1e400", "100.1", "1", "1e-9"])
def test_a_factor_is_finite_above_1_and_at_most_100(factor: str) -> None:
    text = OOM_GROW.replace("factor: 2", f"factor: {factor}")
    assert [found[0] for found in problems(text)] == ["rules[0].mutate.resources.memory"]


def test_a_json_file_is_read_too_and_its_repeated_fields_are_seen() -> None:
    document = policy_document(parse_policy_document(OOM_GROW))
    assert parse_policy_document(json.dumps(document, indent="\t")) == parse_policy_document(OOM_GROW)
    repeated = '{"name": "p1", "name": "p2", "defaultAction": "Fail"}'
    assert problems(repeated, envelope_required=False) == [("name", "duplicate_field", None)]


def test_a_rest_body_that_is_no_json_is_refused_with_its_line() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        policy_from_json('{\n"name": "p1",}')
    assert [(problem.code, problem.line) for problem in caught.value.problems] == [("syntax", 2)]


def deep_list() -> list[Any]:
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    ("sentence", "value", "code"),
    [
        ("null", None, "present"),
        ("a text", "p1", "type"),
        ("a list nested for ever", deep_list(), "too_deep"),
        ("more values than a policy has", {"rules": [1] * 30_000}, "too_large"),
    ],
)
def test_an_object_is_held_to_the_same_rules(sentence: str, value: object, code: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        policy_from_object(value)
    assert [problem.code for problem in caught.value.problems] == [code], sentence


def test_two_spellings_of_one_field_are_a_repeated_field() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        policy_from_object({"name": "p1", "Name": "p2", "defaultAction": "Fail"})
    assert [problem.code for problem in caught.value.problems] == ["duplicate_field"]


def test_values_that_mean_nothing_are_left_out_of_a_document() -> None:
    policy = Policy(name="p1", default_action=Action.FAIL)
    assert policy_document(policy, envelope=False) == {"name": "p1", "defaultAction": "Fail"}


def test_the_keys_of_a_document_can_come_in_alphabetical_order() -> None:
    text = policy_yaml(parse_policy_document(OOM_GROW), alphabetical=True)
    keys = [line.partition(":")[0] for line in text.splitlines() if line[0].isalpha()]
    assert keys == ["apiVersion", "defaultAction", "kind", "name", "retryLimit", "rules"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20)
AMBIGUOUS = st.sampled_from(
    ["yes", "y", "null", "~", "1e9", "0x1F", "12", "<<", "a: b", "# x", "- x", " ", "'", "\n", "\x85"]
)
BUMPS = st.one_of(
    st.sampled_from(["1Gi", "500M", "1e9", "+5Gi", "100m", ".5", "5."]).map(
        lambda text: MemoryBump(static=text)
    ),
    st.floats(1.0, 100.0, exclude_min=True).map(lambda factor: MemoryBump(factor=factor)),
)
MUTATIONS = st.builds(Mutation, avoid_same_node=st.booleans(), memory=st.none() | BUMPS)
RULES = st.builds(
    Rule,
    action=st.sampled_from(Action),
    on_category=TEXTS | AMBIGUOUS,
    on_subcategory=st.just("") | TEXTS | AMBIGUOUS,
    mutation=MUTATIONS,
)
POLICIES = st.builds(
    Policy,
    name=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True),
    retry_limit=st.integers(0, 2**32 - 1),
    default_action=st.sampled_from(Action),
    rules=st.lists(RULES, max_size=4).map(tuple),
)


@given(POLICIES, st.booleans())
def test_a_policy_written_as_yaml_reads_back_the_same(policy: Policy, alphabetical: bool) -> None:
    assert parse_policy_document(policy_yaml(policy, alphabetical=alphabetical)) == policy


@given(POLICIES)
def test_a_policy_written_as_json_reads_back_the_same(policy: Policy) -> None:
    text = json.dumps(policy_document(policy, envelope=False))
    assert policy_from_json(text) == policy
    assert policy_from_object(json.loads(text)) == policy


@given(st.text(max_size=200) | st.text("{}[]:,-&*!<>|\"'\n \tabn0.", max_size=200))
def test_any_text_is_either_a_policy_or_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_policy_document(text)
    assert caught.value.problems
    assert all(problem.message and problem.code for problem in caught.value.problems)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "rules", "action", "mutate", "resources", "memory", "x"]), inner
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_object_is_either_a_policy_or_refused(value: object) -> None:
    try:
        policy = policy_from_object(value)
    except DocumentInvalid as invalid:
        told = len(invalid.problems)
    else:
        told = len(policy.name)
    assert told
