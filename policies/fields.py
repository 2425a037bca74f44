"""Read the fields of a document strictly, collecting every problem with its path and line.

Letter case of field names is forgiven, everything else is exact: unknown fields, repeated fields and values of another
type are problems. Null leaves a field unset. A reader never stops at the first problem.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policies.problems import Problem
from policies.tree import Node

__all__ = ["Fields", "Findings", "suggestion", "unknown_field"]


@dataclass(kw_only=True, slots=True)
class Findings:
    """What a reader found wrong so far, and the line of every path it has seen."""

    decoding: list[Problem] = field(default_factory=list)
    rules: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def misread(self, path: str, code: str, message: str, line: int | None = None) -> None:
        """A value that could not be read."""
        self.decoding.append(self._problem(path, code, message, line))

    def broken(self, path: str, code: str, message: str) -> None:
        """A value that was read and breaks a rule. Said only where the value was read as meant."""
        if not any(
            problem.code != "unknown_field" and _same_place(problem.path, path) for problem in self.decoding
        ):
            self.rules.append(self._problem(path, code, message, None))

    def _problem(self, path: str, code: str, message: str, line: int | None) -> Problem:
        return Problem(path=path, code=code, message=message, line=line or self._line_of(path))

    def _line_of(self, path: str) -> int | None:
        """The line of the path, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path)


def _same_place(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer.startswith(shorter) and (longer[len(shorter) :] or ".")[0] in ".["


class Fields:
    """The fields of one mapping. Ask for each by name, then call `finish` to have the others refused."""

    def __init__(self, node: Node, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._values: dict[str, Node] = {}
        self._written: dict[str, str] = {}
        self._asked: set[str] = set()
        self._known: list[str] = []
        if node.line is not None:
            findings.lines.setdefault(path, node.line)
        if node.entries is None and not node.is_null:
            findings.misread(path, "type", f"This must be a mapping of fields, not {node.kind}.")
        for entry in node.entries or ():
            self._take(entry.key, entry.value, entry.line)

    def _take(self, key: str, value: Node, line: int | None) -> None:
        folded = key.casefold()
        if folded in self._values:
            message = f"The field {_shown(key)} is written twice. Keep one."
            self.findings.misread(self.at(_shown(key)), "duplicate_field", message, line)
            return
        self._values[folded] = value
        self._written[folded] = key
        if line is not None:
            self.findings.lines[self.at(_shown(key))] = line

    def at(self, name: str) -> str:
        """The path of a field of this mapping."""
        return f"{self.path}.{name}" if self.path else name

    def node(self, name: str) -> Node:
        """The value of a field, null when it is absent."""
        folded = name.casefold()
        self._asked.add(folded)
        self._known.append(name)
        line = self.findings.lines.get(self.at(_shown(self._written.get(folded, name))))
        if line is not None:
            self.findings.lines[self.at(name)] = line
        return self._values.get(folded, Node())

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return not self._values.get(name.casefold(), Node()).is_null

    def text(self, name: str, default: str = "") -> str:
        value = self.node(name).scalar
        if isinstance(value, str):
            return value
        self._mistyped(name, "text", hint=' Put it in quotes: "…".')
        return default

    def boolean(self, name: str) -> bool:
        value = self.node(name).scalar
        if isinstance(value, bool):
            return value
        self._mistyped(name, "true or false")
        return False

    def whole_number(self, name: str, *, least: int, most: int) -> int:
        value = self.node(name).scalar
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self._mistyped(name, f"a whole number from {least} to {most}", hint=_unquote(value))
        return 0

    def number(self, name: str) -> float:
        value = self.node(name).scalar
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _as_double(value)
        self._mistyped(name, "a number", hint=_unquote(value))
        return 0.0

    def mapping(self, name: str) -> Fields:
        """The fields of a mapping; none when it is absent."""
        return Fields(self.node(name), self.at(name), self.findings)

    def elements(self, name: str) -> Iterator[tuple[str, Node]]:
        """Each element of a list with its path; none when it is absent."""
        node = self.node(name)
        if node.items is None:
            self._mistyped(name, "a list")
        for index, item in enumerate(node.items or ()):
            path = f"{self.at(name)}[{index}]"
            if item.line is not None:
                self.findings.lines[path] = item.line
            yield path, item

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(
            str(node.scalar)
            for path, node in self.elements(name)
            if self._element_is(path, node, isinstance(node.scalar, str), "text")
        )

    def whole_numbers(self, name: str, *, least: int, most: int) -> tuple[int, ...]:
        """A list of whole numbers within bounds."""
        found = []
        for path, node in self.elements(name):
            value = node.scalar
            fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
            if self._element_is(path, node, fits, f"a whole number from {least} to {most}"):
                found.append(int(str(value)))
        return tuple(found)

    def finish(self) -> None:
        """Refuse every field that nobody asked for."""
        for folded, key in self._written.items():
            if folded not in self._asked:
                self.findings.misread(self.at(_shown(key)), "unknown_field", unknown_field(key, self._known))

    def _mistyped(self, name: str, wanted: str, *, hint: str = "") -> None:
        """A problem, unless the field is absent or null: that leaves it unset."""
        node = self.node(name)
        if not node.is_null:
            self.findings.misread(
                self.at(name), "type", f"This must be {wanted}, not {_said(node)}.{hint}".rstrip()
            )

    def _element_is(self, path: str, node: Node, fits: bool, wanted: str) -> bool:  # noqa: FBT001
        if not fits:
            self.findings.misread(path, "type", f"This must be {wanted}, not {_said(node)}.")
        return fits


def _as_double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _said(node: Node) -> str:
    if isinstance(node.scalar, int | float) and not isinstance(node.scalar, bool):
        return str(node.scalar) if abs(_as_double(node.scalar)) < 1e20 else "a huge number"
    return node.kind


def _unquote(value: object) -> str:
    return " Write it without quotes." if isinstance(value, str) else ""


def _shown(key: str) -> str:
    return key if len(key) <= 60 else f"{key[:60]}…"


def unknown_field(key: str, known: Iterable[str]) -> str:
    """What is said of a field that is not there, with the one that may be meant."""
    return f"There is no field {_shown(key)} here.{suggestion(key, known)}"


def suggestion(key: str, known: Iterable[str]) -> str:
    """The question whether one of the known names is meant, after a blank; empty where none is near."""
    near = nearest(key, known)
    return f" Did you mean {near}?" if near else ""


def nearest(key: str, known: Iterable[str]) -> str:
    """The known name that is nearest, in any letter case; empty where none is near."""
    if len(key) > 60:
        return ""
    names = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(key.casefold().replace("_", ""), names, n=1, cutoff=0.8)
    return names[close[0]] if close else ""
