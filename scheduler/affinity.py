"""Where a pod may go besides its node selector: required node affinity and tolerations, checked as pods bring them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.fields import Fields, problem_of_line
from scheduler.spelling import FREE, Shape, below

type Term = list[dict[str, Any]]
"""Expressions that must all hold: `[{"key", "operator", "values"}]`."""

MAX_TERMS = 64
MAX_EXPRESSIONS = 64
MAX_VALUES = 256
MAX_TOLERATIONS = 64
LONGEST_KEY = 317
LONGEST_VALUE = 63

AFFINITY_SHAPE: Shape = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": {
                "matchExpressions": {"key": FREE, "operator": FREE, "values": FREE},
                "matchFields": FREE,
            },
        },
        "preferredDuringSchedulingIgnoredDuringExecution": FREE,
    },
    "podAffinity": FREE,
    "podAntiAffinity": FREE,
}
TOLERATION_SHAPE: Shape = {
    "key": FREE,
    "operator": FREE,
    "value": FREE,
    "effect": FREE,
    "tolerationSeconds": FREE,
}

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WHOLE = re.compile(r"-?\d{1,18}")
_ABSENT_OF_AFFINITY = {
    "podAffinity": "Jobs are not placed by other jobs. Remove it, or use nodeAffinity.",
    "podAntiAffinity": "Jobs are not placed by other jobs. Remove it, or use nodeAffinity.",
}
_ABSENT_OF_NODE_AFFINITY = {
    "preferredDuringSchedulingIgnoredDuringExecution": (
        "Only what is required counts. Remove it, or use requiredDuringSchedulingIgnoredDuringExecution."
    )
}
_ABSENT_OF_TERM = {"matchFields": "Nodes are chosen by their labels only. Use matchExpressions."}
_ABSENT_OF_TOLERATION = {
    "tolerationSeconds": "A taint never ends a run here, so there is nothing to wait for. Remove it."
}


def read_affinity(pod: Fields) -> list[Term]:
    """The required terms of a pod's node affinity, any of which must hold; none where it asks for nothing."""
    affinity = _inner(pod, "affinity")
    affinity.refuse(_ABSENT_OF_AFFINITY)
    nodes = _inner(affinity, "nodeAffinity")
    nodes.refuse(_ABSENT_OF_NODE_AFFINITY)
    required_field = "requiredDuringSchedulingIgnoredDuringExecution"
    required = _inner(nodes, required_field)
    terms = [
        _read_term(Fields(value, path, pod.problems))
        for path, value in required.each("nodeSelectorTerms", most=MAX_TERMS, required=not required.is_empty)
    ]
    for fields in (affinity, nodes, required):
        fields.refuse_unknown()
    return terms


def read_tolerations(pod: Fields) -> list[dict[str, str]]:
    """The taints a pod puts up with: `[{"key", "operator", "value", "effect"}]`."""
    return [
        _read_toleration(Fields(value, path, pod.problems))
        for path, value in pod.each("tolerations", most=MAX_TOLERATIONS)
    ]


def _inner(fields: Fields, name: str) -> Fields:
    return Fields(fields.take(name), below(fields.path, name), fields.problems)


def _read_term(term: Fields) -> Term:
    term.refuse(_ABSENT_OF_TERM)
    expressions = [
        _read_expression(Fields(value, path, term.problems))
        for path, value in term.each("matchExpressions", most=MAX_EXPRESSIONS, required=True)
    ]
    term.refuse_unknown()
    return expressions


def _read_expression(expression: Fields) -> dict[str, Any]:
    key = expression.text("key", most=LONGEST_KEY, required=True)
    operator = _one_of(expression, "operator", _OPERATORS, required=True)
    values = _read_values(expression)
    if problem := _problem_of_values(operator, values):
        expression.note("values", problem)
    expression.refuse_unknown()
    return {"key": key, "operator": operator, "values": values}


def _read_values(expression: Fields) -> list[str]:
    values = []
    for path, value in expression.each("values", most=MAX_VALUES):
        if problem := problem_of_line(value, most=LONGEST_VALUE):
            expression.problems.add(path, problem)
        values.append(str(value))
    return values


def _problem_of_values(operator: str, values: Sequence[str]) -> str:
    match operator:
        case "In" | "NotIn" if not values:
            return f"{operator} needs at least one value."
        case "Exists" | "DoesNotExist" if values:
            return f"{operator} takes no values. Remove them."
        case "Gt" | "Lt" if len(values) != 1 or not _WHOLE.fullmatch(values[0]):
            return f"{operator} takes exactly one value, a whole number."
    return ""


def _read_toleration(toleration: Fields) -> dict[str, str]:
    toleration.refuse(_ABSENT_OF_TOLERATION)
    found = {
        "key": toleration.text("key", most=LONGEST_KEY),
        "operator": _one_of(toleration, "operator", ("Equal", "Exists")) or "Equal",
        "value": toleration.text("value", most=LONGEST_VALUE),
        "effect": _one_of(toleration, "effect", _EFFECTS),
    }
    _note_contradictions(toleration, found)
    toleration.refuse_unknown()
    return found


def _note_contradictions(toleration: Fields, found: Mapping[str, str]) -> None:
    if found["operator"] == "Exists" and found["value"]:
        toleration.note("value", "Exists takes no value. Remove it, or use Equal.")
    elif found["operator"] == "Equal" and not found["key"]:
        toleration.note(
            "key", "Is required, except with the operator Exists, which then tolerates everything."
        )


def _one_of(fields: Fields, name: str, allowed: Sequence[str], *, required: bool = False) -> str:
    found = fields.text(name, most=63, required=required)
    if found and found not in allowed:
        fields.note(name, f"Takes one of {', '.join(allowed)}.")
        return ""
    return found
