"""A plain copy of what was sent: field names spelled as the reference spells them, nothing that cannot be stored.

The letter case of field names is forgiven, as the model forgives it; what follows can go by exact names.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from policies.problems import MOST_PROBLEMS, DocumentInvalid, Problem

MAX_DEPTH = 32
MAX_VALUES = 500_000

type Shape = Mapping[str, Shape]
"""Field names an object may have, each with the shape of what is in it, or of what is in the list it holds."""

FREE: Shape = {}
"""Keys of any name, left as they are."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHOWN = 63  # characters of a key in a path


class Problems:
    """Gathers what is wrong, so that everything is told at once."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, path: str, message: str, code: str = "invalid") -> None:
        """Note one problem; beyond MOST_PROBLEMS they are not kept."""
        if len(self.found) < MOST_PROBLEMS:
            self.found.append(Problem(path=path, message=message, code=code))

    def raise_any(self) -> None:
        """Raises DocumentInvalid with everything noted, or does nothing."""
        if self.found:
            raise DocumentInvalid(self.found)


def below(path: str, key: str | int) -> str:
    """The path of a field or element: `jobs[0].podSpec`, `limits["nvidia.com/gpu"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key[:_SHOWN]}"]'
    return f"{path}.{key[:_SHOWN]}" if path else key[:_SHOWN]


def plain_copy(value: object, shape: Shape, problems: Problems) -> Any:
    """JSON values only, copied, with the names of the shape. Problems are noted; too deep or large is raised."""
    return _Copier(problems).copy(value, shape, "", MAX_DEPTH)


def spelled(document: object, name: str) -> object:
    """The value of a top-level field in any letter case; None when there is none, or no object."""
    if not isinstance(document, Mapping):
        return None
    return next((value for key, value in document.items() if str(key).lower() == name.lower()), None)


class _Copier:
    """Copies one document and counts its values: text with references can be small and mean much."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._left = MAX_VALUES

    def copy(self, value: object, shape: Shape, path: str, depth: int) -> Any:
        self._count(path, depth)
        if isinstance(value, Mapping):
            return self._object(value, shape, path, depth)
        if isinstance(value, list | tuple):
            return [self.copy(item, shape, below(path, index), depth - 1) for index, item in enumerate(value)]
        problem = _problem_of_scalar(value)
        if problem:
            self._problems.add(path, problem, "type")
        return value

    def _object(self, value: Mapping[Any, Any], shape: Shape, path: str, depth: int) -> dict[str, Any]:
        names = {name.lower(): name for name in shape}
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str) or _UNSTORABLE.search(key):
                self._problems.add(
                    path, f"The field name {str(key)[:_SHOWN]!r} is not text. Quote it.", "type"
                )
                continue
            name = names.get(key.lower(), key)
            if name in copied:
                self._problems.add(below(path, name), "The field is there twice. Keep one.", "duplicate")
            copied[name] = self.copy(item, shape.get(name, FREE), below(path, name), depth - 1)
        return copied

    def _count(self, path: str, depth: int) -> None:
        self._left -= 1
        if depth < 0:
            message = f"Nested deeper than {MAX_DEPTH} levels. Write it flatter."
            raise DocumentInvalid([Problem(path=path[:200], message=message, code="too_deep")])
        if self._left < 0:
            message = f"More than {MAX_VALUES:,} values. Send it in several parts."
            raise DocumentInvalid([Problem(path="", message=message, code="too_large")])


def _problem_of_scalar(value: object) -> str:
    if isinstance(value, str):
        return "Holds a character that cannot be stored. Remove it." if _UNSTORABLE.search(value) else ""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**63 else "The number is too large."
    if isinstance(value, float):
        return "" if math.isfinite(value) else "The number must be finite."
    return f"Takes text, a number, true or false, not a {type(value).__name__}. Quote it to make it text."
