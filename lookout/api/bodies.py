"""Reading what was sent: bodies within limits, JSON or YAML without ambiguity, the query of the address."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, QueryDict

from lookout.api.json_reading import object_of_json, refuse_unstorable, refused
from lookout.api.shapes import Bounds, Field, decode, fields_of, is_list, optional
from policies.lines import with_lines
from policies.problems import DocumentInvalid
from policies.tree import object_of_text, tree_of_text
from scheduler.errors import NotFound

JSON = "application/json"
YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
MOST_BODY_BYTES = 1024 * 1024
MOST_JOB_FILE_BYTES = 16 * 1024 * 1024
MOST_REPORT_BYTES = 32 * 1024 * 1024
LONGEST_NUMBER = 40
"""Digits of a number in an address that is still read as one."""
_FLAGS = {"true": True, "yes": True, "1": True, "": True, "false": False, "no": False, "0": False}


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
        return object_of_text(self.text) if self.is_yaml else object_of_json(self.text)

    @contextmanager
    def told_with_lines(self) -> Iterator[None]:
        """Problems that are raised within get the lines of the text, where it is YAML."""
        try:
            yield
        except DocumentInvalid as error:
            if not self.is_yaml or all(problem.code == "syntax" for problem in error.problems):
                raise
            raise DocumentInvalid(with_lines(error.problems, tree_of_text(self.text))) from error
        except NotFound as error:
            if not self.is_yaml or not error.problems:
                raise
            problems = with_lines(error.problems, tree_of_text(self.text))
            raise NotFound(error.kind, error.name, problems=problems) from error


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


def query_of[T](request: HttpRequest, shape: type[T], *, among: Collection[str] | None = None) -> T:
    """The parameters of the address as a value of that shape; unknown ones are refused like unknown fields.

    `among` names the only ones that are looked at, where others are read by somebody else.
    """
    known = {field.wire_name: field for field in fields_of(shape)}
    sent = {
        name: _parameter(known[name], values) if name in known else values
        for name, values in parameters_of(request).lists()
        if among is None or name in among
    }
    refuse_unstorable(sent)
    return decode(shape, sent)


def parameters_of(request: HttpRequest) -> QueryDict:
    """The parameters of the address. Raises DocumentInvalid where there are more than are read."""
    try:
        return request.GET
    except SuspiciousOperation as error:
        raise refused("The address has too many parameters. Ask for less at once.", "too_large") from error


def _parameter(field: Field, values: list[str]) -> Any:
    """The text of a parameter, or all of them for a list, made into what the field's type reads."""
    kind = optional(field.type) or field.type
    if is_list(kind) or len(values) > 1:
        return values
    (text,) = values
    if kind is bool:
        return _FLAGS.get(text.lower(), text)
    if kind is int and _is_number(text):
        return int(text)
    return text


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= LONGEST_NUMBER


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
        raise refused("The body is not UTF-8 text.", "syntax") from error
