"""Lines of what a document says, for problems that were found in plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from policies.problems import Problem
from policies.tree import Node

__all__ = ["in_line_order", "lines_of", "nearest_line", "with_lines"]


def lines_of(tree: Node) -> dict[str, int]:
    """Path → line of everything in a tree that knows lines. Letter case of paths is folded."""
    found: dict[str, int] = {}
    _gather(tree, "", found)
    return found


def nearest_line(lines: Mapping[str, int], path: str) -> int | None:
    """The line of a path, or of the nearest thing around it; None for the document as a whole."""
    path = path.casefold()
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path) if path else None


def with_lines(problems: Iterable[Problem], tree: Node) -> list[Problem]:
    """Problems with the lines their paths have in the tree, in the order of those lines."""
    lines = lines_of(tree)
    found = [replace(problem, line=problem.line or nearest_line(lines, problem.path)) for problem in problems]
    return in_line_order(found)


def in_line_order(problems: Iterable[Problem]) -> list[Problem]:
    """By line; those of one line stay as they are, and those without any come last."""
    return sorted(problems, key=lambda problem: problem.line or math.inf)


def _gather(node: Node, path: str, found: dict[str, int]) -> None:
    if node.line is not None:
        found.setdefault(path, node.line)
    for number, item in enumerate(node.items or ()):
        _gather(item, f"{path}[{number}]", found)
    for entry in node.entries or ():
        at = (f"{path}.{entry.key}" if path else entry.key).casefold()
        if entry.line is not None:
            found.setdefault(at, entry.line)
        _gather(entry.value, at, found)
