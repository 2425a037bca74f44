"""Strategies: values nobody honest sends, and valid documents in which something was replaced by one."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

EDGES = [0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400]
FLOATS = [0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan")]
QUANTITIES = [
    "0",
    "-1",
    "1e",
    "1e999999999",
    "9" * 200,
    ".",
    "1Ki1",
    "+1Gi",
    "9223372036854775807",
    "1n",
    "٣",
    " 1",
    "1Gi\n",
]
TEXTS = [
    "",
    "\x00",
    "\ud800",
    "\n",
    "\x1b[2J",
    "a\u202eb",
    "null",
    "yes",
    "1",
    "../..",
    "x" * 5_000,
    "\U00020000" * 300,
    "é",
]

texts = st.sampled_from(TEXTS + QUANTITIES) | st.text(max_size=20)
scalars = st.none() | st.booleans() | st.sampled_from([*EDGES, *FLOATS]) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
deep = st.integers(20, 200).map(lambda depth: _nested(depth))


def _nested(depth: int) -> Any:
    value: Any = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@st.composite
def mutated(draw: st.DrawFn, valid: Any) -> Any:
    """The document with one to three changes: a value replaced, a key taken out, renamed, added or written twice."""
    document = deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        document = _changed(draw, document)
    return document


def _changed(draw: st.DrawFn, document: Any) -> Any:
    places = list(_places(document))
    if not places:
        return draw(values)
    holder, key = draw(st.sampled_from(places))
    change = draw(
        st.sampled_from(["replace", "replace", "replace", "drop", "rename", "add", "repeat", "deepen"])
    )
    if change == "replace":
        holder[key] = draw(values)
    elif change == "deepen":
        holder[key] = draw(deep)
    elif change == "drop":
        del holder[key]
    elif isinstance(holder, list):
        holder.extend([holder[key]] * draw(st.sampled_from([1, 1, 300])))
    elif change == "rename":
        holder[draw(texts)] = holder.pop(key)
    elif change == "add":
        holder[draw(texts)] = draw(values)
    else:
        holder[str(key).swapcase()] = draw(values)
    return document


def _places(value: Any) -> Any:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _places(value[key])


@st.composite
def as_json(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> str:
    """A document as JSON, in which now and then a few characters were changed."""
    text = json.dumps(draw(documents))
    if draw(st.booleans()):
        return text
    at = draw(st.integers(0, max(len(text) - 1, 0)))
    return (
        text[:at]
        + draw(st.sampled_from(['"', "{", "[", "]}", ",", ":", "\\u0000", "\\", "1e999", "NaN", "\x00"]))
        + text[at + 1 :]
    )


_LINES = [
    "a: 1",
    "a: 1",
    "- b",
    "? c",
    ": d",
    "&x",
    "*x",
    "!!str",
    "<<: *x",
    "---",
    "...",
    ">",
    "'",
    '"',
    "{",
    "}",
    "[",
    "]",
    "%YAML 1.1",
    "#",
    "  ",
    "name: x",
    "rules:",
    "  - action: Retry",
    "0x1F: 0b1",
    ".nan",
    "~",
    "\ufeff",
    "\x85",
    "\u2028",
    "\t",
]
yaml_lines = st.lists(st.sampled_from([*_LINES, "|"]) | st.text(max_size=10), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n", " ", "\r\n", "\n  "]).map(lambda end: end.join(lines))
)
"""Text that is nearly YAML."""
