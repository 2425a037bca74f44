"""Files people write, read strictly: YAML or JSON, no key twice, every problem with its file, line and path."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from lookout.cli.printing import one_line
from policies.lines import nearest_line
from policies.problems import MOST_PROBLEMS, DocumentInvalid
from policies.tree import Entry, Limits, Node, tree_of_yaml

STANDARD_INPUT = Path("-")
LIMITS = Limits(bytes=16 * 1024 * 1024, depth=50, nodes=1_000_000)
"""What the server takes of a job file, counted with its keys."""
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
        told = [_told(name, problem) for problem in self.problems[:MOST_PROBLEMS]]
        more = len(self.problems) - len(told)
        super().__init__("\n".join([*told, *([f"There are {more:,} problems more."] if more else [])]))


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
        found = [
            FileProblem(
                path=problem.path,
                message=problem.message,
                line=problem.line or nearest_line(self.lines, problem.path),
            )
            for problem in problems
        ]
        return FileRefused(self.name, sorted(found, key=lambda problem: problem.line or math.inf))


def read_file(path: Path) -> LoadedFile:
    """The text of a file; `-` is the standard input. Raises FileRefused."""
    name = "standard input" if path == STANDARD_INPUT else str(path)
    try:
        raw = _start_of(path)
        if len(raw) > LIMITS.bytes:
            message = f"This is larger than {LIMITS.bytes // 1024:,} KiB. Split it."
            raise FileRefused(name, [FileProblem(path="", message=message)])
        return LoadedFile(name=name, text=raw.decode("utf-8-sig"))
    except OSError as error:
        raise FileRefused(name, [FileProblem(path="", message=f"{error.strerror or error}.")]) from error
    except UnicodeDecodeError as error:
        raise FileRefused(name, [FileProblem(path="", message="This is not UTF-8 text.")]) from error


def _start_of(path: Path) -> bytes:
    """All of it, unless that is more than could be sent."""
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(LIMITS.bytes + 1)
    with path.open("rb") as file:
        return file.read(LIMITS.bytes + 1)


def load_file(path: Path) -> LoadedFile:
    """A file with what it says. Raises FileRefused where it is neither YAML nor JSON, or nothing Tack takes.

    Keys that are there twice and numbers that cannot be sent are in `problems`, for whoever uses the file to tell
    with its own.
    """
    read = read_file(path)
    reading = _Reading()
    try:
        value = reading.value(tree_of_yaml(read.text, limits=LIMITS), "")
    except DocumentInvalid as error:
        return replace(read, value=_json_that_is_no_yaml(read, error))
    return replace(read, value=value, lines=reading.lines, problems=tuple(reading.problems))


def _json_that_is_no_yaml(read: LoadedFile, error: DocumentInvalid) -> Any:
    """JSON that holds a character as an escaped pair is no YAML, and JSON all the same."""
    if all(problem.code == "syntax" for problem in error.problems):
        try:
            return json.loads(read.text, object_pairs_hook=_each_key_once, parse_constant=_refuse_constant)
        except _KeyTwice as twice:
            raise FileRefused(read.name, [FileProblem(path=str(twice), message=_TWICE)]) from twice
        except (ValueError, RecursionError):
            pass
    raise read.refused(error.problems) from error


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


class _Reading:
    """Turns nodes into values, remembering lines and gathering problems."""

    def __init__(self) -> None:
        self.problems: list[FileProblem] = []
        self.lines: dict[str, int] = {}

    def value(self, node: Node, path: str) -> Any:
        if node.line is not None:
            self.lines.setdefault(path.casefold(), node.line)
        if node.items is not None:
            return [self.value(item, f"{path}[{number}]") for number, item in enumerate(node.items)]
        return self._scalar(node, path) if node.entries is None else self._mapping(node.entries, path)

    def _scalar(self, node: Node, path: str) -> Any:
        value = node.scalar
        if isinstance(value, float) and not math.isfinite(value):
            return self._refuse(path, f"{value} is no number that can be sent.", node.line)
        if isinstance(value, int) and value.bit_length() > 64:
            return self._refuse(path, "The number is too large to be sent.", node.line)
        return value

    def _mapping(self, entries: Iterable[Entry], path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for entry in entries:
            at = f"{path}.{entry.key}" if path else entry.key
            if entry.key in found:
                self._refuse(at, _TWICE, entry.line)
            if entry.line is not None:
                self.lines[at.casefold()] = entry.line
            found[entry.key] = self.value(entry.value, at)
        return found

    def _refuse(self, path: str, message: str, line: int | None) -> None:
        self.problems.append(FileProblem(path=path, message=message, line=line))


def _told(name: str, problem: FileProblem) -> str:
    place = f"{name}:{problem.line}" if problem.line else name
    told = f"{place}: {problem.path}: {problem.message}" if problem.path else f"{place}: {problem.message}"
    return one_line(told)
