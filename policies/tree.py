"""Read YAML or JSON text, or plain objects, into a tree that remembers lines and duplicate keys.

Refused, because two readers could understand two things or one could choke: aliases, anchors, tags, merge keys, a second
document, nesting or size beyond reason, text a database cannot hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from policies.problems import DocumentInvalid, Problem

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "Entry",
    "Limits",
    "Node",
    "object_of_text",
    "plain_scalar",
    "tree_of_json",
    "tree_of_object",
    "tree_of_text",
    "tree_of_yaml",
]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 24
MAX_NODES = 20_000

Scalar = None | bool | int | float | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much a document may be. The defaults are for what people write by hand."""

    bytes: int = MAX_BYTES
    depth: int = MAX_DEPTH
    nodes: int = MAX_NODES

    @property
    def too_deep(self) -> str:
        return f"The document is nested deeper than {self.depth} levels. Write it flatter."

    @property
    def too_many(self) -> str:
        return f"The document has more than {self.nodes:,} values. Split it."


USUAL = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One key of a mapping as written, and its value."""

    key: str
    value: Node
    line: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A scalar, a list (tuple of nodes) or a mapping (`entries`, duplicates and all)."""

    scalar: Scalar = None
    items: tuple[Node, ...] | None = None
    entries: tuple[Entry, ...] | None = None
    line: int | None = None

    @property
    def kind(self) -> str:
        """What it is, in words for a message."""
        if self.entries is not None:
            return "a mapping"
        if self.items is not None:
            return "a list"
        return _kind_of_scalar(self.scalar)

    @property
    def is_null(self) -> bool:
        return self.entries is None and self.items is None and self.scalar is None


def _kind_of_scalar(value: Scalar) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return "text" if isinstance(value, str) else "a number"


def tree_of_text(text: str) -> Node:
    """The tree of a YAML or JSON document; an empty one is null. Raises DocumentInvalid."""
    _check_size(text)
    if text.lstrip().startswith("{"):
        try:
            return _read_json(text, parse_float=_number)
        except json.JSONDecodeError:
            pass  # it may be YAML that begins with a brace
    return _tree_of_yaml(text)


def object_of_text(text: str) -> object:
    """What a YAML or JSON text says, as plain lists, mappings and scalars. Raises DocumentInvalid, also for twin keys."""
    return _plain(tree_of_text(text), "")


def _plain(node: Node, path: str) -> object:
    if node.items is not None:
        return [_plain(item, f"{path}[{number}]") for number, item in enumerate(node.items)]
    if node.entries is None:
        return node.scalar
    found: dict[str, object] = {}
    for entry in node.entries:
        at = f"{path}.{entry.key[:60]}" if path else entry.key[:60]
        if entry.key in found:
            message = "This key is there twice. Keep one of them."
            raise DocumentInvalid(
                [Problem(path=at, message=message, code="duplicate_field", line=entry.line)]
            )
        found[entry.key] = _plain(entry.value, at)
    return found


def tree_of_json(text: str) -> Node:
    """The tree of a JSON text and nothing else, such as a REST body. Raises DocumentInvalid."""
    _check_size(text)
    try:
        return _read_json(text, parse_float=float)
    except json.JSONDecodeError as error:
        raise _refused("syntax", f"This is not JSON: {error.msg}.", error.lineno) from error


def tree_of_yaml(text: str, *, limits: Limits = USUAL) -> Node:
    """The tree of a text read as YAML whatever it begins with, so that JSON has lines, too. Raises DocumentInvalid."""
    _check_size(text, limits)
    return _tree_of_yaml(text, limits)


def _check_size(text: str, limits: Limits = USUAL) -> None:
    if len(text) > limits.bytes or len(text.encode("utf-8", "surrogatepass")) > limits.bytes:
        raise _refused("too_large", f"The document is larger than {limits.bytes // 1024:,} KiB. Split it.")


def _refused(code: str, message: str, line: int | None = None) -> DocumentInvalid:
    return DocumentInvalid([Problem(path="", message=message, code=code, line=line)])


# JSON

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


def _read_json(text: str, *, parse_float: Callable[[str], float]) -> Node:
    depth = 0
    for token in _JSON_TOKEN.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth > MAX_DEPTH:
            raise _refused("too_deep", USUAL.too_deep)
    value = json.loads(
        text, object_pairs_hook=_Pairs, parse_int=_number, parse_float=parse_float, parse_constant=float
    )
    return tree_of_object(value)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object before anything is lost: its pairs in order, repeated keys included."""


def _number(text: str) -> int | float:
    """A number as the model's reader understands it: 2.0 is the whole number 2; a huge one is infinite."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    if not math.isfinite(number) or not number.is_integer():
        return number
    try:
        return int(text)
    except ValueError:
        return int(number)


def tree_of_object(value: object) -> Node:
    """The tree of a value that was already read from JSON or YAML. Raises DocumentInvalid."""
    left = iter(range(MAX_NODES))
    return _node(value, MAX_DEPTH, left)


def _node(value: object, depth: int, left: Iterator[int]) -> Node:
    if depth < 0:
        raise _refused("too_deep", USUAL.too_deep)
    if next(left, None) is None:
        raise _refused("too_large", USUAL.too_many)
    if isinstance(value, _Pairs | Mapping):
        pairs = value if isinstance(value, _Pairs) else list(value.items())
        return Node(
            entries=tuple(
                Entry(key=_checked(_as_text(key)), value=_node(item, depth - 1, left)) for key, item in pairs
            )
        )
    if isinstance(value, list | tuple):
        return Node(items=tuple(_node(item, depth - 1, left) for item in value))
    if isinstance(value, str):
        return Node(scalar=_checked(value))
    if value is None or isinstance(value, bool | int | float):
        return Node(scalar=value)
    return Node(scalar=_checked(_as_text(value)))


def _as_text(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # a number of thousands of digits
        return "a huge number"


def _checked(text: str, line: int | None = None) -> str:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        message = "The document holds a character that cannot be stored (a NUL or half of a pair). Remove it."
        raise _refused("text_invalid", message, line)
    return text


# YAML

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON")
_FALSE = re.compile(r"n|N|no|No|NO|false|False|FALSE|off|Off|OFF")
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_BASED = re.compile(r"(?P<sign>[-+]?)(?P<digits>0x[0-9a-fA-F_]+|0b[01_]+|0o?[0-7_]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"(?P<sign>[-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def plain_scalar(text: str) -> Scalar:
    """What an unquoted YAML scalar means, by the rules of YAML 1.1: `yes` is a boolean, `1e9` a number."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    based = _BASED.fullmatch(text)
    if based is not None and len(text) > 1:
        return _based_number(based["sign"], based["digits"].replace("_", ""), text)
    if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        return _number(text.replace("_", ""))
    special = _SPECIAL.fullmatch(text)
    if special is not None:
        return float(text.replace(".", "", 1))
    return text


def _based_number(sign: str, digits: str, text: str) -> Scalar:
    octal = digits[1:].isdigit() and digits.startswith("0")
    try:
        number = int(digits, 8) if octal else int(digits, 0)
    except ValueError:
        return text
    return -number if sign == "-" else number


def _tree_of_yaml(text: str, limits: Limits = USUAL) -> Node:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(limits).build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(part for part in (error.problem, error.context) if part)
        line = None if mark is None else mark.line + 1
        raise _refused("syntax", f"This is not YAML: {reason or 'unreadable'}.", line) from error
    except (yaml.YAMLError, UnicodeError) as error:
        reason = str(error).partition("\n")[0]
        raise _refused("syntax", f"This is not YAML: {reason}.") from error


class _Open:
    """A list or mapping whose end has not been read yet."""

    def __init__(self, *, is_mapping: bool, line: int) -> None:
        self.is_mapping = is_mapping
        self.line = line
        self.items: list[Node] = []
        self.entries: list[Entry] = []
        self.key: Entry | None = None

    def add(self, node: Node) -> None:
        if not self.is_mapping:
            self.items.append(node)
        elif self.key is None:
            self.key = Entry(key=_key_text(node), value=node, line=node.line)
        else:
            self.entries.append(Entry(key=self.key.key, value=node, line=self.key.line))
            self.key = None

    def closed(self) -> Node:
        if self.is_mapping:
            return Node(entries=tuple(self.entries), line=self.line)
        return Node(items=tuple(self.items), line=self.line)


def _key_text(node: Node) -> str:
    if node.entries is not None or node.items is not None:
        raise _refused("key_invalid", f"A field name must be text, not {node.kind}.", node.line)
    return str(node.scalar)


class _Builder:
    """Builds the tree from the parser's events, without recursion, and refuses what is ambiguous."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: list[_Open] = []
        self.root: Node | None = None
        self.count = 0

    def build(self, events: Iterator[yaml.Event]) -> Node:
        for event in events:
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
                raise _refused("one_document", "There is a second document. Write one per file.", line)
            if isinstance(event, yaml.NodeEvent):
                self._node(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._add(self.open.pop().closed())
        return self.root or Node()

    def _node(self, event: yaml.NodeEvent, line: int) -> None:
        self.count += 1
        if self.count > self.limits.nodes:
            raise _refused("too_large", self.limits.too_many, line)
        if event.anchor is not None:
            sign = "alias" if isinstance(event, yaml.AliasEvent) else "anchor"
            message = f"The {sign} {event.anchor!r} is not allowed. Write the value out."
            raise _refused(f"{sign}_refused", message, line)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _refused("tag_refused", f"The tag {tag!r} is not allowed. Leave it out.", line)
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event, line))
            return
        if len(self.open) >= self.limits.depth:
            raise _refused("too_deep", self.limits.too_deep, line)
        self.open.append(_Open(is_mapping=isinstance(event, yaml.MappingStartEvent), line=line))

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Node:
        value = _checked(event.value, line)
        if not event.implicit[0]:
            return Node(scalar=value, line=line)
        in_key = bool(self.open) and self.open[-1].is_mapping and self.open[-1].key is None
        if value == "<<" and in_key:
            raise _refused("merge_refused", "The merge key << is not allowed. Write the fields out.", line)
        return Node(scalar=value if in_key else plain_scalar(value), line=line)

    def _add(self, node: Node) -> None:
        if self.open:
            self.open[-1].add(node)
        else:
            self.root = node
