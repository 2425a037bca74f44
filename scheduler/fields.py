"""Typed reading of an object's fields, each problem noted with its path.

A null field counts as absent, as it does in the model.
"""

import re
from collections.abc import Mapping
from typing import Any

from policies.fields import unknown_field
from scheduler.spelling import Problems, below

MAX_WHOLE = 2**31 - 1
"""The largest whole number a field takes unless it says otherwise."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What breaks a line, steers a terminal, cannot be stored, or turns the order of what follows around."""


class Fields:
    """The fields of one object. Each is taken by name; what nobody took can be refused at the end."""

    def __init__(self, value: object, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._known: list[str] = []
        if value is not None and not isinstance(value, Mapping):
            self.note("", f"Takes fields with values, not {kind_of(value)}.", "type")
        self._left: dict[str, Any] = (
            {key: item for key, item in value.items() if item is not None}
            if isinstance(value, Mapping)
            else {}
        )

    def note(self, name: str, message: str, code: str = "invalid") -> None:
        """Note a problem of one field, or of the object when the name is empty."""
        self.problems.add(below(self.path, name) if name else self.path, message, code)

    @property
    def is_empty(self) -> bool:
        """Nothing is left to take."""
        return not self._left

    def take(self, name: str) -> Any:
        """The value as it is; None when absent."""
        self._known.append(name)
        return self._left.pop(name, None)

    def text(
        self,
        name: str,
        *,
        most: int,
        required: bool = False,
        pattern: re.Pattern[str] | None = None,
        says: str = "",
    ) -> str:
        """A line of text of at most so many characters; empty when absent. `says` describes the pattern."""
        value = self.take(name)
        if value is None or value == "":
            if required:
                self.note(name, "Is required.", "required")
            return ""
        problem = problem_of_line(value, most=most)
        if not problem and pattern is not None and not pattern.fullmatch(value):
            problem = f"Takes {says}."
        if problem:
            self.note(name, problem)
            return ""
        return str(value)

    def whole(self, name: str, *, least: int = 0, most: int = MAX_WHOLE, default: int = 0) -> int:
        """A whole number between two bounds; 2.0 is one."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.note(name, f"Takes a whole number, not {kind_of(value)}.", "type")
        elif not least <= value <= most:
            self.note(name, f"Takes a whole number from {least} to {most}.", "range")
        else:
            return value
        return default

    def flag(self, name: str) -> bool:
        """True or false; false when absent."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            self.note(name, f"Takes true or false, not {kind_of(value)}.", "type")
        return value is True

    def number(self, name: str, *, least: float, most: float, default: float) -> float:
        """A number between two bounds."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.note(name, f"Takes a number, not {kind_of(value)}.", "type")
        elif not least <= value <= most:
            self.note(name, f"Takes a number from {least:,.12g} to {most:,.12g}.", "range")
        else:
            return float(value)
        return default

    def each(self, name: str, *, most: int, required: bool = False) -> list[tuple[str, Any]]:
        """The elements of a list of at most so many, each with its path."""
        value = self.take(name)
        if required and (value is None or value == []):
            self.note(name, "Needs at least one element.", "required")
        if value is None:
            return []
        if not isinstance(value, list):
            self.note(name, f"Takes a list, not {kind_of(value)}.", "type")
            return []
        if len(value) > most:
            self.note(name, f"Has {len(value):,} elements; at most {most:,} are allowed.", "too_large")
            return []
        return [(below(below(self.path, name), index), item) for index, item in enumerate(value)]

    def lines(self, name: str, *, most: int, longest: int) -> tuple[str, ...]:
        """A list of lines of text."""
        return tuple(
            item for path, item in self.each(name, most=most) if self._is_line(path, item, longest=longest)
        )

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        """A list of texts of any length, line breaks included."""
        found = []
        for path, item in self.each(name, most=most):
            if isinstance(item, str):
                found.append(item)
            else:
                self.problems.add(path, f"Takes text, not {kind_of(item)}. Quote it.", "type")
        return tuple(found)

    def entries(self, name: str, *, most: int = MAX_WHOLE) -> dict[str, Any]:
        """The fields of an object in it, as they are; empty when absent."""
        value = self.take(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.note(name, f"Takes fields with values, not {kind_of(value)}.", "type")
            return {}
        if len(value) > most:
            self.note(name, f"Has {len(value):,} entries; at most {most:,} are allowed.", "too_large")
            return {}
        return value

    def refuse(self, absent: Mapping[str, str]) -> None:
        """Note each of these fields that is there, with why it is refused."""
        for name, why in absent.items():
            if self._left.pop(name, None) is not None:
                self.note(name, why, "not_supported")

    def refuse_unknown(self) -> None:
        """Note every field nobody took."""
        for name in self._left:
            self.note(name, unknown_field(name, self._known), "unknown_field")

    def _is_line(self, path: str, item: object, *, longest: int) -> bool:
        problem = problem_of_line(item, most=longest) if item != "" else "Must not be empty."
        if problem:
            self.problems.add(path, problem)
        return not problem


def problem_of_line(value: object, *, most: int) -> str:
    """What keeps a value from being a line of text of at most so many characters, or nothing."""
    if not isinstance(value, str):
        return f"Takes text, not {kind_of(value)}. Quote it."
    if len(value) > most:
        return f"Has {len(value):,} characters; at most {most:,} are allowed."
    if _CONTROL.search(value):
        return "Holds a line break or a control character. Remove it."
    return ""


def is_line(text: str) -> bool:
    """Whether a text can be the name of anything: nothing in it breaks the line, or the database."""
    return not problem_of_line(text, most=MAX_WHOLE)


def written_out(text: str) -> str:
    """A text as one line that can stand in a log: ends of lines, and what steers a terminal, as their codes."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def kind_of(value: object) -> str:
    """What a value is, in the words of a message."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list | tuple) else "fields"
