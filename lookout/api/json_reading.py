"""JSON text to plain values: refused is what two readers could read differently, and what would cost more than it says.

The size of a body bounds neither time nor memory: a few megabytes can hold millions of empty lists. So values are
counted before anything is made of them, and the walks over what was read are taken only where there is reason to.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from policies.problems import DocumentInvalid, Problem
from scheduler.spelling import below

MOST_DEPTH = 48
MOST_VALUES = 500_000

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""PostgreSQL keeps no NUL, UTF-8 no half of a surrogate pair."""
_MAY_BE_UNSTORABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Raw, neither can stand in JSON that came as UTF-8; escaped it can."""
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{,]', re.DOTALL)
"""Strings, to be passed over, and the signs that a value begins after."""


def object_of_json(text: str, *, mend: bool = False) -> object:
    """What JSON text says. Refused: keys given twice, NaN, text that cannot be stored, nesting or size beyond reason.

    `mend` replaces characters that cannot be stored instead of refusing them.
    """
    _refuse_too_many(text)
    reader = _Reader()
    found = reader.read(text)
    if text.count("[") + text.count("{") > MOST_DEPTH:
        _refuse_too_deep(found)
    if reader.twins:
        _refuse_twins(found)
    if not _MAY_BE_UNSTORABLE.search(text):
        return found
    if mend:
        return _mended(found)
    refuse_unstorable(found)
    return found


def refused(message: str, code: str, path: str = "", line: int | None = None) -> DocumentInvalid:
    """The one problem of a body."""
    return DocumentInvalid([Problem(path=path, message=message, code=code, line=line)])


def refuse_unstorable(value: object) -> None:
    """Raises DocumentInvalid for text within the value that cannot be stored."""
    for path, text in _texts(value, ""):
        if _UNSTORABLE.search(text):
            message = "Holds a character that cannot be stored (a NUL or half of a pair). Remove it."
            raise refused(message, "text_invalid", _storable(path, "?"))


def _refuse_too_many(text: str) -> None:
    if text.count(",") + text.count("[") + text.count("{") <= MOST_VALUES:
        return  # counted with those in strings; hardly ever is more to be done
    signs = (sign for sign in _STRUCTURE.finditer(text) if not sign[0].startswith('"'))
    if next(islice(signs, MOST_VALUES, None), None) is not None:
        raise refused(f"More than {MOST_VALUES:,} values. Send it in several parts.", "too_large")


class _Twins(dict[str, Any]):
    """An object in which a key was given twice."""

    twin: str


class _Reader:
    """Reads one text, and remembers whether any object of it had a key twice."""

    def __init__(self) -> None:
        self.twins = False

    def read(self, text: str) -> object:
        try:
            found: object = json.loads(
                text, object_pairs_hook=self._object, parse_constant=_no_constant, parse_int=_whole
            )
        except json.JSONDecodeError as error:
            raise refused(f"This is not JSON: {error.msg}.", "syntax", line=error.lineno) from error
        except RecursionError as error:
            raise refused("The body is nested too deep. Write it flatter.", "too_deep") from error
        return found

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.twins = True
        twins = _Twins(found)
        seen: set[str] = set()
        twins.twin = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        return twins


def _no_constant(name: str) -> Any:
    raise refused(f"The body holds {name}, which is not JSON.", "syntax")


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise refused("The body holds a number too long to read.", "syntax") from error


def _refuse_too_deep(value: object) -> None:
    layer: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        insides = (
            item.values() if isinstance(item, dict) else item
            for item in layer
            if isinstance(item, dict | list)
        )
        layer = [item for inside in insides for item in inside]
    if layer:
        raise refused("The body is nested too deep. Write it flatter.", "too_deep")


def _refuse_twins(value: object) -> None:
    for path, item in _objects(value, ""):
        if isinstance(item, _Twins):
            raise refused(
                "Is given twice. Keep one.", "duplicate_key", _storable(below(path, item.twin), "?")
            )


def _objects(value: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
    for at, item in _inside(value, path):
        yield from _objects(item, at)


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    if isinstance(value, dict):
        yield from ((below(path, key), key) for key in value)
    for at, item in _inside(value, path):
        yield from _texts(item, at)


def _inside(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((below(path, key), item) for key, item in value.items())
    elif isinstance(value, list):
        yield from ((below(path, number), item) for number, item in enumerate(value))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _storable(value, "\ufffd")
    if isinstance(value, dict):
        return {_storable(key, "\ufffd"): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list) else value


def _storable(text: str, instead: str) -> str:
    return _UNSTORABLE.sub(instead, text)
