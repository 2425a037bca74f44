"""The configuration of an executor's categories: from `application.errorCategories` to Categories.

Read as strictly as policies are. While classification is switched off only the form is checked, not the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.failures import Categories, Category, CategoryRule, Disposition, Failure
from policies.fields import Fields, Findings
from policies.matchers import (
    Condition,
    ConditionMatcher,
    ExitCodeMatcher,
    ExitCodeOperator,
    Matcher,
    MatcherKind,
    Pattern,
    PatternError,
    PodErrorMatcher,
    PodEventMatcher,
    TerminationMessageMatcher,
    compile_pattern,
)
from policies.problems import DocumentInvalid
from policies.tree import Node, tree_of_object

__all__ = ["MAX_CATEGORY_BYTES", "parse_categories"]

MAX_CATEGORY_BYTES = 63
_INT32 = 2**31


def parse_categories(value: object, *, path: str = "") -> Categories:
    """The categories of a configuration object; None means none, switched off.

    Raises DocumentInvalid with every problem; `path` says where in a larger file the object lies.
    """
    findings = Findings()
    fields = Fields(tree_of_object(value), path, findings)
    categories = _read_categories(fields)
    problems = findings.decoding + (findings.rules if categories.enabled else [])
    if problems:
        raise DocumentInvalid(problems)
    return categories


def _read_categories(fields: Fields) -> Categories:
    enabled = fields.boolean("enabled")
    default = Failure(category=fields.text("defaultCategory"), subcategory=fields.text("defaultSubcategory"))
    _check_length(fields, "defaultCategory", default.category, "default_category_length")
    _check_length(fields, "defaultSubcategory", default.subcategory, "default_subcategory_length")
    names: set[str] = set()
    categories = tuple(
        _read_category(Fields(node, path, fields.findings), names)
        for path, node in fields.elements("categories")
    )
    fields.finish()
    return Categories(enabled=enabled, categories=categories, default=default)


def _check_length(fields: Fields, name: str, text: str, code: str) -> None:
    if len(text.encode()) > MAX_CATEGORY_BYTES:
        fields.findings.broken(
            fields.at(name), code, f"This has at most {MAX_CATEGORY_BYTES} bytes. Shorten it."
        )


def _read_category(fields: Fields, names: set[str]) -> Category:
    name = fields.text("name")
    _check_category_name(fields, name, names)
    elements = tuple(fields.elements("rules"))
    if not elements:
        fields.findings.broken(fields.at("rules"), "rules_required", "Give the category at least one rule.")
    written = fields.text("action")
    disposition = Disposition.RETAIN
    if written:
        known = _one_of(Disposition, written, fields, fields.at("action"), "action_known")
        disposition = known or disposition
    rules = tuple(_read_rule(node, path, fields.findings) for path, node in elements)
    fields.finish()
    return Category(
        name=name, disposition=disposition, rules=tuple(rule for rule in rules if rule is not None)
    )


def _check_category_name(fields: Fields, name: str, names: set[str]) -> None:
    if not name:
        fields.findings.broken(fields.at("name"), "category_name_required", "Give the category a name.")
        return
    _check_length(fields, "name", name, "category_name_length")
    if name in names:
        message = f"There is a category {name!r} already. Join their rules."
        fields.findings.broken(fields.at("name"), "category_name_unique", message)
    names.add(name)


def _one_of[Closed: (Condition, Disposition, ExitCodeOperator)](
    closed: type[Closed], written: str, fields: Fields, path: str, code: str
) -> Closed | None:
    try:
        return closed(written)
    except ValueError:
        names = " or ".join(closed)
        fields.findings.broken(path, code, f"{written[:60]!r} is not known. Write {names}.")
        return None


def _read_rule(node: Node, path: str, findings: Findings) -> CategoryRule | None:
    fields = Fields(node, path, findings)
    subcategory = fields.text("subcategory")
    _check_length(fields, "subcategory", subcategory, "subcategory_length")
    rule = _Rule(
        container_name=fields.text("containerName"), subcategory=subcategory, hint=fields.text("hint")
    )
    written = [kind for kind in MatcherKind if _is_written(fields, kind)]
    if len(written) != 1:
        _say_how_many(fields, written)
    matchers = [_READERS[kind](fields) for kind in written]
    for kind in MatcherKind:
        fields.node(kind)
    fields.finish()
    matcher = matchers[0] if len(matchers) == 1 else None
    return None if matcher is None else rule.with_matcher(matcher)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """What a rule says beside its matcher."""

    container_name: str
    subcategory: str
    hint: str

    def with_matcher(self, matcher: Matcher) -> CategoryRule:
        return CategoryRule(
            matcher=matcher,
            container_name=self.container_name,
            subcategory=self.subcategory,
            hint=self.hint,
        )


def _is_written(fields: Fields, kind: MatcherKind) -> bool:
    """An empty list of conditions counts as none."""
    return fields.has(kind) and fields.node(kind).items != ()


def _say_how_many(fields: Fields, written: list[MatcherKind]) -> None:
    names = ", ".join(MatcherKind)
    if written:
        message = f"A rule has one matcher; this has {' and '.join(written)}. Make a rule of each."
        fields.findings.broken(fields.path, "one_matcher_only", message)
    else:
        fields.findings.broken(fields.path, "one_matcher_required", f"Give the rule one of {names}.")


def _read_conditions(fields: Fields) -> Matcher | None:
    path = fields.at(MatcherKind.CONDITIONS)
    known = [
        _one_of(Condition, written, fields, f"{path}[{index}]", "condition_known")
        for index, written in enumerate(fields.texts(MatcherKind.CONDITIONS))
    ]
    return ConditionMatcher(conditions=tuple(condition for condition in known if condition is not None))


def _read_exit_codes(fields: Fields) -> Matcher | None:
    block = fields.mapping(MatcherKind.EXIT_CODES)
    operator = _one_of(
        ExitCodeOperator, block.text("operator"), block, block.at("operator"), "exit_code_operator"
    )
    values = block.whole_numbers("values", least=-_INT32, most=_INT32 - 1)
    if not values:
        block.findings.broken(block.at("values"), "exit_code_values", "List at least one exit code.")
    block.finish()
    return None if operator is None else ExitCodeMatcher(operator=operator, values=frozenset(values))


def _read_termination_message(fields: Fields) -> Matcher | None:
    pattern = _read_pattern_block(fields, MatcherKind.TERMINATION_MESSAGE, "termination_regexp")
    return None if pattern is None else TerminationMessageMatcher(pattern=pattern)


def _read_pod_error(fields: Fields) -> Matcher | None:
    pattern = _read_pattern_block(fields, MatcherKind.POD_ERROR, "pod_error_regexp")
    return None if pattern is None else PodErrorMatcher(pattern=pattern)


def _read_pattern_block(fields: Fields, kind: MatcherKind, code: str) -> Pattern | None:
    block = fields.mapping(kind)
    pattern = _read_pattern(block, "pattern", code)
    block.finish()
    return pattern


def _read_pod_events(fields: Fields) -> Matcher | None:
    block = fields.mapping(MatcherKind.POD_EVENTS)
    pattern = _read_pattern(block, "regexp", "event_regexp")
    reason, event_type = block.text("reason"), block.text("type")
    if event_type not in ("Normal", "Warning"):
        block.findings.broken(block.at("type"), "event_type", "The type of an event is Normal or Warning.")
    block.finish()
    return None if pattern is None else PodEventMatcher(pattern=pattern, type=event_type, reason=reason)


def _read_pattern(block: Fields, name: str, code: str) -> Pattern | None:
    try:
        return compile_pattern(block.text(name))
    except PatternError as error:
        block.findings.broken(block.at(name), code, f"This is not an RE2 pattern: {error}.")
        return None


_READERS = {
    MatcherKind.CONDITIONS: _read_conditions,
    MatcherKind.EXIT_CODES: _read_exit_codes,
    MatcherKind.TERMINATION_MESSAGE: _read_termination_message,
    MatcherKind.POD_ERROR: _read_pod_error,
    MatcherKind.POD_EVENTS: _read_pod_events,
}
