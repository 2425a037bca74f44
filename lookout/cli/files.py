"""Files people write, read strictly: YAML or JSON, no key twice, every problem with its file, line and path."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import yaml

from policies.tree import plain_scalar

STANDARD_INPUT = Path("-")
_DEEPEST = 50
_TWICE = "This key is there twice. Keep one of them."


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """One thing to mend in a file."""

    path: str
    message: str
    line: int | None = None


class FileRefused(click.ClickException):
    """A file cannot be used. The message has a line per problem, each with the file, its line and its path."""

    exit_code = 1

    def __init__(self, name: str, problems: Iterable[FileProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(_told(name, problem) for problem in self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """A file's text, what it says, on which line each path of it stands, and what in it is ambiguous."""

    name: str
    text: str
    value: Any = None
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[FileProblem, ...] = ()

    def refused(self, problems: Iterable[Any]) -> FileRefused:
        """The error that tells these problems (anything with path, message and line) about this file."""
        return FileRefused(
            self.name,
            [
                FileProblem(
                    path=problem.path,
                    message=problem.message,
                    line=problem.line or self.line_of(problem.path),
                )
                for problem in problems
            ],
        )

    def line_of(self, path: str) -> int | None:
        """The line of a path, or of the nearest thing around it that is in the file."""
        return _nearest_line(self.lines, path)


def _nearest_line(lines: Mapping[str, int], path: str) -> int | None:
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path) if path else None


def read_file(path: Path) -> LoadedFile:
    """The text of a file; `-` is the standard input. Raises FileRefused."""
    name = "standard input" if path == STANDARD_INPUT else str(path)
    try:
        raw = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
        return LoadedFile(name=name, text=raw.decode("utf-8-sig"))
    except OSError as error:
        raise FileRefused(name, [FileProblem(path="", message=f"{error.strerror or error}.")]) from error
    except UnicodeDecodeError as error:
        raise FileRefused(name, [FileProblem(path="", message="This is not UTF-8 text.")]) from error


def load_file(path: Path) -> LoadedFile:
    """A file with what it says. Raises FileRefused where it is neither YAML nor JSON.

    Keys that are there twice, aliases and numbers that cannot be sent are in `problems`, for whoever uses the file
    to tell with its own.
    """
    read = read_file(path)
    reading = _Reading()
    try:
        node = yaml.compose(read.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        value = None if node is None else reading.value(node, "", _DEEPEST)
    except (yaml.YAMLError, RecursionError) as error:
        return replace(read, value=_json_that_is_no_yaml(read, _syntax(error)))
    return replace(read, value=value, lines=reading.lines, problems=tuple(reading.problems))


def _json_that_is_no_yaml(read: LoadedFile, problem: FileProblem) -> Any:
    """JSON that holds a character as an escaped pair is no YAML, and JSON all the same."""
    try:
        return json.loads(read.text, object_pairs_hook=_each_key_once, parse_constant=_refuse_constant)
    except _KeyTwice as error:
        raise FileRefused(read.name, [FileProblem(path=str(error), message=_TWICE)]) from error
    except (ValueError, RecursionError):
        raise FileRefused(read.name, [problem]) from None


class _KeyTwice(ValueError):
    """A key is in an object twice. The message is the key."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _KeyTwice(key)
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _syntax(error: Exception) -> FileProblem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    reason = " ".join(part for part in (getattr(error, "problem", ""), getattr(error, "context", "")) if part)
    reason = reason or (
        "it is nested too deep" if isinstance(error, RecursionError) else str(error).split("\n")[0]
    )
    return FileProblem(path="", message=f"This is not YAML: {reason}.", line=mark.line + 1 if mark else None)


class _Reading:
    """Turns YAML nodes into values, remembering lines and gathering problems."""

    def __init__(self) -> None:
        self.problems: list[FileProblem] = []
        self.lines: dict[str, int] = {}
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        # An alias is the node it stands for, which began further up.
        self.lines.setdefault(path, max(node.start_mark.line + 1, _nearest_line(self.lines, path) or 0))
        if depth == 0:
            return self._refuse(node, path, "This is nested too deep. Write it flatter.")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        # A node met again is an alias: two readers could understand two things, and a small file grow without end.
        if id(node) in self._seen:
            return self._refuse(node, path, "An alias is not allowed. Write the value out.")
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, f"{path}[{n}]", depth - 1) for n, item in enumerate(node.value)]
        return self._mapping(node, path, depth)

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        value = node.value if node.style else plain_scalar(node.value)
        if isinstance(value, float) and not math.isfinite(value):
            return self._refuse(node, path, f"{node.value} is no number that can be sent.")
        return value

    def _mapping(self, node: yaml.Node, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, path, "A key must be text.")
                continue
            at = f"{path}.{key.value}" if path else key.value
            if key.value in found:
                self._refuse(key, at, _TWICE)
            self.lines[at] = key.start_mark.line + 1
            found[key.value] = self.value(item, at, depth - 1)
        return found

    def _refuse(self, node: yaml.Node, path: str, message: str) -> None:
        line = max(node.start_mark.line + 1, self.lines.get(path, 0))
        self.problems.append(FileProblem(path=path, message=message, line=line))


def _told(name: str, problem: FileProblem) -> str:
    place = f"{name}:{problem.line}" if problem.line else name
    return f"{place}: {problem.path}: {problem.message}" if problem.path else f"{place}: {problem.message}"
