"""What is wrong with a document: every problem at once, each with its path, its line and a code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["MOST_PROBLEMS", "DocumentInvalid", "Problem"]

MOST_PROBLEMS = 100
"""More are not listed: whoever mends a hundred will check again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing to mend. The path is empty for the document as a whole; the line, from 1, is known for YAML text."""

    path: str
    message: str
    code: str
    line: int | None = None

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.path, f"line {self.line}" if self.line else "") if part)
        return f"{where}: {self.message}" if where else self.message


class DocumentInvalid(ValueError):
    """The document cannot be accepted; `problems` says everything that is wrong with it, in reading order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)[:MOST_PROBLEMS]
        super().__init__("\n".join(str(problem) for problem in self.problems))
