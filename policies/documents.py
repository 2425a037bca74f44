"""Retry policies as documents: YAML or JSON text, or plain objects, to a Policy and back.

Reading is strict and complete: every problem is reported at once, in the order of the document's meaning, each with its
path, a code and (for YAML) its line.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from policies.category_documents import parse_categories
from policies.fields import Fields, Findings
from policies.lines import in_line_order
from policies.policy import NO_MUTATION, Action, MemoryBump, Mutation, Policy, Rule
from policies.problems import DocumentInvalid, Problem
from policies.quantity import QuantityError, parse_quantity
from policies.tree import Node, plain_scalar, tree_of_json, tree_of_object, tree_of_text

__all__ = [
    "API_VERSION",
    "KIND",
    "MAX_FACTOR",
    "MAX_NAME_BYTES",
    "MAX_RETRY_LIMIT",
    "DocumentInvalid",
    "PolicyDraft",
    "Problem",
    "RuleDraft",
    "mutation_document",
    "parse_action",
    "parse_categories",
    "parse_policy_document",
    "policy_document",
    "policy_from_json",
    "policy_from_object",
    "policy_yaml",
    "read_policy",
]

API_VERSION = "armadaproject.io/v1beta1"
KIND = "RetryPolicy"
MAX_NAME_BYTES = 63
MAX_RETRY_LIMIT = 2**32 - 1
MAX_FACTOR = 100.0

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ACTION_NUMBERS: tuple[Action | None, ...] = (None, Action.FAIL, Action.RETRY)
_ACTION_NAMES: dict[str, Action | None] = {
    "Unspecified": None,
    "Fail": Action.FAIL,
    "Retry": Action.RETRY,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleDraft:
    """A rule as written, before it is known to be complete; a missing action is None, a missing text empty."""

    action: Action | None = None
    on_category: str = ""
    on_subcategory: str = ""
    mutation: Mutation = NO_MUTATION


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyDraft:
    """A policy as written, before it is known to be complete, and everything wrong with it.

    `misread` are the problems of decoding (syntax, unknown fields, types), `problems` all of them in reading order.
    """

    name: str = ""
    retry_limit: int = 0
    default_action: Action | None = None
    rules: tuple[RuleDraft, ...] = ()
    misread: tuple[Problem, ...] = field(default=())
    problems: tuple[Problem, ...] = field(default=())

    def policy(self) -> Policy:
        """The policy. Raises DocumentInvalid with every problem."""
        if self.problems or self.default_action is None:
            raise DocumentInvalid(self.problems)
        return self.as_far_as_read()

    def as_far_as_read(self) -> Policy:
        """What can be read of it, for whoever looks for more problems; actions that are missing are Fail."""
        rules = tuple(
            Rule(
                action=rule.action or Action.FAIL,
                on_category=rule.on_category,
                on_subcategory=rule.on_subcategory,
                mutation=rule.mutation,
            )
            for rule in self.rules
        )
        return Policy(
            name=self.name,
            retry_limit=self.retry_limit,
            default_action=self.default_action or Action.FAIL,
            rules=rules,
        )


def parse_policy_document(text: str, *, envelope_required: bool = True) -> Policy:
    """The policy of a YAML or JSON text. Raises DocumentInvalid with every problem.

    `apiVersion` and `kind` may be left out only where they are not required, which is over REST.
    """
    return read_policy(tree_of_text(text), envelope_required=envelope_required).policy()


def policy_from_json(text: str, *, envelope_required: bool = False) -> Policy:
    """The policy of a JSON text, such as a REST body as it came: repeated fields are seen and refused, too."""
    return read_policy(tree_of_json(text), envelope_required=envelope_required).policy()


def policy_from_object(value: object, *, envelope_required: bool = False) -> Policy:
    """The policy of an object that was already read, such as a REST body. Raises DocumentInvalid likewise."""
    return read_policy(tree_of_object(value), envelope_required=envelope_required).policy()


def read_policy(tree: Node, *, envelope_required: bool) -> PolicyDraft:
    """What a document says, and everything wrong with it; raises nothing."""
    findings = Findings()
    if tree.is_null:
        begin = f"apiVersion: {API_VERSION} and kind: {KIND}" if envelope_required else "its name"
        findings.broken("", "present", f"There is no policy here. Begin with {begin}.")
        return PolicyDraft(problems=tuple(findings.rules))
    fields = Fields(tree, "", findings)
    if tree.entries is None or not _read_envelope(fields, required=envelope_required):
        return PolicyDraft(misread=tuple(findings.decoding), problems=tuple(findings.decoding))
    draft = _read_policy_fields(fields)
    _check_policy(draft, findings)
    problems = in_line_order(sorted(findings.decoding + findings.rules, key=_reading_order))
    return PolicyDraft(
        name=draft.name,
        retry_limit=draft.retry_limit,
        default_action=draft.default_action,
        rules=draft.rules,
        misread=tuple(findings.decoding),
        problems=tuple(problems),
    )


def _read_envelope(fields: Fields, *, required: bool) -> bool:
    """Whether this is a retry policy at all; the fields of anything else are not worth reporting."""
    kind = ""
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        kind = fields.text(name)
        if not fields.has(name):
            if required:
                fields.findings.misread(
                    name, f"{name}_required", f"Begin the document with {name}: {wanted}."
                )
        elif kind != wanted and isinstance(fields.node(name).scalar, str):
            message = f"{name} is {kind[:60]!r}; for a retry policy it is {wanted}."
            fields.findings.misread(name, f"{name}_known", message)
    return kind in ("", KIND)


def _read_policy_fields(fields: Fields) -> PolicyDraft:
    draft = PolicyDraft(
        name=fields.text("name"),
        retry_limit=fields.whole_number("retryLimit", least=0, most=MAX_RETRY_LIMIT),
        default_action=_read_action(fields, "defaultAction"),
        rules=tuple(_read_rule(node, path, fields.findings) for path, node in fields.elements("rules")),
    )
    fields.finish()
    return draft


def _read_rule(node: Node, path: str, findings: Findings) -> RuleDraft:
    if node.is_null:
        findings.misread(path, "rule_present", "There is no rule here. Write one, or remove the dash.")
    fields = Fields(node, path, findings)
    rule = RuleDraft(
        action=_read_action(fields, "action"),
        on_category=fields.text("onCategory"),
        on_subcategory=fields.text("onSubcategory"),
        mutation=_read_mutation(fields.mapping("mutate")),
    )
    fields.finish()
    return rule


def _read_mutation(fields: Fields) -> Mutation:
    affinity = fields.mapping("affinity")
    avoid_same_node = affinity.boolean("avoidSameNode")
    affinity.finish()
    resources = fields.mapping("resources")
    memory = _read_memory(resources.mapping("memory")) if resources.has("memory") else None
    resources.node("memory")
    resources.finish()
    fields.finish()
    return Mutation(avoid_same_node=avoid_same_node, memory=memory)


def _read_memory(fields: Fields) -> MemoryBump:
    bump = MemoryBump(static=fields.text("static"), factor=fields.number("factor"))
    fields.finish()
    return bump


def parse_action(value: object) -> Action | None:
    """An action from its number, its canonical name, or its short name in any letter case; None is unspecified.

    Raises ValueError with the fix.
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(_ACTION_NUMBERS):
        return _ACTION_NUMBERS[value]
    if isinstance(value, str):
        for name, action in _ACTION_NAMES.items():
            if value.lower() == name.lower() or value == f"RETRY_ACTION_{name.upper()}":
                return action
    raise ValueError("An action is Fail or Retry.")


def _read_action(fields: Fields, name: str) -> Action | None:
    node = fields.node(name)
    if node.is_null:
        return None
    try:
        return parse_action(node.kind if node.scalar is None else node.scalar)
    except ValueError as error:
        fields.findings.misread(fields.at(name), "action_known", str(error))
        return None


def _check_policy(draft: PolicyDraft, findings: Findings) -> None:
    _check_name(draft.name, findings)
    for index, rule in enumerate(draft.rules):
        _check_rule(rule, f"rules[{index}]", findings)
    if draft.default_action is None:
        findings.broken(
            "defaultAction",
            "default_action_required",
            "Say what happens when no rule matches: defaultAction: Fail or Retry.",
        )


def _check_name(name: str, findings: Findings) -> None:
    if not name:
        findings.broken("name", "name_required", "Give the policy a name.")
    elif len(name.encode()) > MAX_NAME_BYTES:
        findings.broken("name", "name_length", f"A name has at most {MAX_NAME_BYTES} bytes. Shorten it.")
    elif not _NAME.fullmatch(name):
        message = "A name has lower-case letters, digits and inner dashes only, such as oom-grow."
        findings.broken("name", "name_pattern", message)


def _check_rule(rule: RuleDraft, path: str, findings: Findings) -> None:
    if rule.action is None:
        findings.broken(f"{path}.action", "action_required", "Say what the rule does: action: Fail or Retry.")
    if not rule.on_category:
        message = "Name the category this rule is for. A subcategory alone is not enough."
        findings.broken(f"{path}.onCategory", "category_required", message)
    if rule.mutation.memory is not None:
        _check_memory(rule.mutation.memory, f"{path}.mutate.resources.memory", findings)


def _check_memory(bump: MemoryBump, path: str, findings: Findings) -> None:
    if bump.static and bump.factor:
        findings.broken(path, "memory_one_kind_only", "Write exactly one of static and factor, not both.")
    elif bump.static:
        _check_static(bump.static, path, findings)
    elif not bump.factor:
        message = "Write exactly one of static (such as 512Mi) and factor (such as 2)."
        findings.broken(path, "memory_one_kind_required", message)
    elif math.isnan(bump.factor) or math.isinf(bump.factor):
        findings.broken(path, "factor_finite", "The factor must be a finite number.")
    elif bump.factor <= 1.0:
        findings.broken(path, "factor_above_one", "The factor must be above 1, or memory would not grow.")
    elif bump.factor > MAX_FACTOR:
        findings.broken(path, "factor_at_most_100", f"The factor must be at most {MAX_FACTOR:.0f}.")


def _check_static(static: str, path: str, findings: Findings) -> None:
    try:
        if parse_quantity(static) <= 0:
            findings.broken(path, "static_positive", "The static amount must be above 0.")
    except QuantityError as error:
        findings.broken(path, "static_quantity", f"The static amount is not understood: {error}")


def _reading_order(problem: Problem) -> tuple[int, int, int]:
    """Where there are no lines: envelope, unknown fields, name, limit, each rule, default."""
    line = problem.line or 0
    rule = re.match(r"rules\[(\d+)\]", problem.path)
    if rule:
        return (6, int(rule[1]), line)
    places = {"": 0, "apiVersion": 1, "kind": 1, "name": 3, "retryLimit": 4, "rules": 5, "defaultAction": 7}
    return (places.get(problem.path, 2), 0, line)


def policy_document(policy: Policy, *, envelope: bool = True) -> dict[str, Any]:
    """The document of a policy, in reading order; values that mean nothing are left out."""
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND} if envelope else {}
    document["name"] = policy.name
    if policy.retry_limit:
        document["retryLimit"] = policy.retry_limit
    document["defaultAction"] = str(policy.default_action)
    if policy.rules:
        document["rules"] = [_rule_document(rule) for rule in policy.rules]
    return document


def _rule_document(rule: Rule) -> dict[str, Any]:
    document: dict[str, Any] = {"action": str(rule.action), "onCategory": rule.on_category}
    if rule.on_subcategory:
        document["onSubcategory"] = rule.on_subcategory
    mutation = mutation_document(rule.mutation)
    return document | ({"mutate": mutation} if mutation else {})


def mutation_document(mutation: Mutation) -> dict[str, Any]:
    """The `mutate` block of a mutation; empty when nothing changes."""
    document: dict[str, Any] = {}
    if mutation.avoid_same_node:
        document["affinity"] = {"avoidSameNode": True}
    bump = mutation.memory
    if bump is not None and bump.static:
        document["resources"] = {"memory": {"static": bump.static}}
    elif bump is not None and bump.factor:
        factor = int(bump.factor) if float(bump.factor).is_integer() else bump.factor
        document["resources"] = {"memory": {"factor": factor}}
    return document


class _Dumper(yaml.SafeDumper):
    """Quotes every text that a reader of YAML 1.1 would take for something else, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002  PyYAML calls it so
        super().increase_indent(flow=flow, indentless=False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Unquoted, some characters count as ends of lines and would come back as blanks.
    quoted = not isinstance(plain_scalar(text), str) or not text.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


def _represent_number(dumper: yaml.SafeDumper, number: float) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(number))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_number)


def policy_yaml(policy: Policy, *, alphabetical: bool = False) -> str:
    """The document of a policy as YAML text, which reads back as the same policy."""
    return yaml.dump(
        policy_document(policy),
        Dumper=_Dumper,
        sort_keys=alphabetical,
        allow_unicode=True,
        width=10_000,
        default_flow_style=False,
    )
