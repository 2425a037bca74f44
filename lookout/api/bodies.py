"""Reading what was sent: bodies within limits, JSON or YAML without ambiguity, the query of the address."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from lookout.api.shapes import Bounds, Field, decode, fields_of, is_list, optional
from policies.problems import DocumentInvalid, Problem
from policies.tree import Node, tree_of_text

JSON = "application/json"
YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
MOST_BODY_BYTES = 1024 * 1024
MOST_JOB_FILE_BYTES = 16 * 1024 * 1024
MOST_REPORT_BYTES = 32 * 1024 * 1024
MOST_DEPTH = 48


class BodyTooLarge(Exception):
    """The body is larger than this endpoint reads."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The body is larger than {limit // 1024:,} KiB. Send it in several parts.")


class MediaTypeUnknown(Exception):
    """The body's Content-Type is none of those the endpoint reads."""

    def __init__(self, sent: str, known: tuple[str, ...]) -> None:
        super().__init__(f"The Content-Type '{sent[:100]}' cannot be read here. Send {' or '.join(known)}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A body as sent: text, and whether it is YAML."""

    text: str
    is_yaml: bool

    def to_object(self) -> object:
        """What the text says. Raises DocumentInvalid for anything two readers could read differently."""
        return _object_of(tree_of_text(self.text), "") if self.is_yaml else object_of_json(self.text)


def body_of[T](
    request: HttpRequest,
    shape: type[T],
    *,
    limit: int = MOST_BODY_BYTES,
    bounds: Bounds | None = None,
    mend: bool = False,
) -> T:
    """The JSON body as a value of that shape. Raises DocumentInvalid with every problem at once.

    `mend` replaces characters that cannot be stored instead of refusing them, for text that jobs wrote.
    """
    text = _text_of(request, limit, (JSON,))
    return decode(shape, object_of_json(text, mend=mend), bounds)


def document_of(request: HttpRequest, *, limit: int = MOST_BODY_BYTES) -> Body:
    """The body as sent, JSON or YAML by its Content-Type."""
    text = _text_of(request, limit, (JSON, YAML[0], *YAML[1:]))
    return Body(text=text, is_yaml=_media_type(request) in YAML)


def query_of[T](request: HttpRequest, shape: type[T]) -> T:
    """The parameters of the address as a value of that shape; unknown ones are refused like unknown fields."""
    known = {field.wire_name: field for field in fields_of(shape)}
    sent = {
        name: _parameter(known[name], values) if name in known else values
        for name, values in request.GET.lists()
    }
    _refuse_unstorable(sent)
    return decode(shape, sent)


def _parameter(field: Field, values: list[str]) -> Any:
    """The text of a parameter, or all of them for a list, made into what the field's type reads."""
    kind = optional(field.type) or field.type
    if is_list(kind) or len(values) > 1:
        return values
    (text,) = values
    if kind is bool:
        return {"true": True, "1": True, "": True, "false": False, "0": False}.get(text.lower(), text)
    if kind is int and text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20:
        return int(text)
    return text


def _media_type(request: HttpRequest) -> str:
    return (request.content_type or JSON).partition(";")[0].strip().lower()


def _text_of(request: HttpRequest, limit: int, known: tuple[str, ...]) -> str:
    if _media_type(request) not in known:
        raise MediaTypeUnknown(_media_type(request), known)
    sent = request.read(limit + 1)
    if len(sent) > limit:
        raise BodyTooLarge(limit)
    try:
        return sent.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused("The body is not UTF-8 text.", "syntax") from error


def _refused(message: str, code: str, path: str = "", line: int | None = None) -> DocumentInvalid:
    return DocumentInvalid([Problem(path=path, message=message, code=code, line=line)])


# JSON -------------------------------------------------------------------------------------------------------


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""PostgreSQL keeps no NUL, UTF-8 no half of a surrogate pair."""


def object_of_json(text: str, *, mend: bool = False) -> object:
    """What JSON text says. Refused: keys given twice, NaN, text that cannot be stored, nesting beyond reason."""
    try:
        found: object = json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _refused(f"This is not JSON: {error.msg}.", "syntax", line=error.lineno) from error
    except RecursionError as error:
        raise _refused("The body is nested too deep. Write it flatter.", "too_deep") from error
    except DocumentInvalid:
        raise
    except ValueError as error:
        raise _refused("The body holds a number too long to read.", "syntax") from error
    _refuse_too_deep(found)
    if mend:
        return _mended(found)
    _refuse_unstorable(found)
    return found


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
        raise _refused("The body is nested too deep. Write it flatter.", "too_deep")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list) else value


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twin = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _refused("is given twice", "duplicate_key", _UNSTORABLE.sub("?", twin))
    return found


def _no_constant(name: str) -> Any:
    raise _refused(f"The body holds {name}, which is not JSON.", "syntax")


def _refuse_unstorable(value: object) -> None:
    for path, text in _texts(value, ""):
        if _UNSTORABLE.search(text):
            message = "holds a character that cannot be stored (a NUL or half of a pair). Remove it."
            raise _refused(message, "text_invalid", _UNSTORABLE.sub("?", path))


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            at = f"{path}.{key}" if path else key
            yield at, key
            yield from _texts(item, at)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{path}[{number}]")


# YAML -------------------------------------------------------------------------------------------------------


def _object_of(node: Node, path: str) -> object:
    if node.items is not None:
        return [_object_of(item, f"{path}[{number}]") for number, item in enumerate(node.items)]
    if node.entries is None:
        return node.scalar
    found: dict[str, object] = {}
    for entry in node.entries:
        at = f"{path}.{entry.key}" if path else entry.key
        if entry.key in found:
            raise _refused("is given twice", "duplicate_key", at, entry.line)
        found[entry.key] = _object_of(entry.value, at)
    return found
