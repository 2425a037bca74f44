"""Two documents line by line: what was taken out and what was put in."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffLine:
    """A line of either document. The sign is a text, `+` or `−`, so that it is copied and read out."""

    number: int
    sign: str
    text: str

    @property
    def kind(self) -> str:
        """The class that colours it."""
        return {"+": "add", "−": "del"}.get(self.sign, "")


def difference(before: str, after: str) -> list[DiffLine]:
    """Every line of `after`, and those of `before` that are gone, in the order of the text."""
    return list(_lines(before.splitlines(), after.splitlines()))


def _lines(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    for tag, old, old_end, new, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _numbered(after, new, new_end, " ")
        else:
            yield from _numbered(before, old, old_end, "−")
            yield from _numbered(after, new, new_end, "+")


def _numbered(lines: list[str], start: int, end: int, sign: str) -> Iterator[DiffLine]:
    for number in range(start, end):
        yield DiffLine(number=number + 1, sign=sign, text=lines[number])
