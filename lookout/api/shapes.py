"""Values to JSON and back: dataclasses say what may be sent and what comes out.

Names are snake_case here and camelCase outside (`is_init` is `init`). Reading is strict: unknown fields, wrong
types, missing fields and values out of bounds are all reported at once, each with its path. Letter case of
field names is forgiven, as in every document of Tack.
"""

import base64
import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAliasType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from policies.fields import unknown_field
from policies.problems import MOST_PROBLEMS, DocumentInvalid, Problem
from scheduler.spelling import below

MOST_ITEMS = 10_000
MOST_CHARACTERS = 64 * 1024
LARGEST = 2**63 - 1
SIGNED_32 = 2**31 - 1
"""As a bound it lets negative numbers through as well; with any other, numbers count from 0."""


type Bounds = Mapping[str, int]
"""By field name: the most characters, items or bytes, or the largest number."""


@dataclasses.dataclass(frozen=True, slots=True)
class AtMost:
    """The most characters of a text, bytes of bytes, items of a list, or the largest number."""

    most: int


@dataclasses.dataclass(frozen=True, slots=True)
class FromOne(AtMost):
    """The largest whole number, where 0 makes no sense: so many at a time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shaped:
    """For the description only: an object that others read and check looks like this shape."""

    shape: type[Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """The name outside, where it is not the camelCase of the name here (`category.any`)."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class WhenKnown:
    """Left out of the answer when it is None."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a shape: its two names, its type without marks, its bounds."""

    name: str
    wire_name: str
    type: Any
    marks: tuple[Any, ...]
    required: bool

    @property
    def bound(self) -> int | None:
        """The bound that was set for this field."""
        return bound_of(self.marks)

    @property
    def from_one(self) -> int | None:
        """The largest number, where the least is 1."""
        return next((mark.most for mark in self.marks if isinstance(mark, FromOne)), None)

    @property
    def is_left_out(self) -> bool:
        """Not there when it is None."""
        return any(isinstance(mark, WhenKnown) for mark in self.marks)


def bound_of(marks: tuple[Any, ...]) -> int | None:
    """The bound among the marks of a type."""
    return next((mark.most for mark in marks if isinstance(mark, AtMost)), None)


_KNOWN: dict[type[Any], Mapping[str, Field]] = {}
"""Fields of shapes by their names outside, in lower case."""


def fields_of(shape: type[Any]) -> Collection[Field]:
    """The fields of a dataclass as they travel; looked up once."""
    return _fields_by_name(shape).values()


def _fields_by_name(shape: type[Any]) -> Mapping[str, Field]:
    if shape not in _KNOWN:
        hints = get_type_hints(shape, include_extras=True)
        fields = [_field(field, hints[field.name]) for field in dataclasses.fields(shape)]
        _KNOWN[shape] = {field.wire_name.lower(): field for field in fields}
    return _KNOWN[shape]


def _field(field: dataclasses.Field[Any], hint: Any) -> Field:
    kind, marks = unmarked(hint)
    named = next((mark.name for mark in marks if isinstance(mark, Named)), None)
    return Field(
        name=field.name,
        wire_name=named or camel_case(field.name),
        type=kind,
        marks=marks,
        required=field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
    )


def unmarked(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its alias and `Annotated`, and the marks it carried."""
    if isinstance(hint, TypeAliasType):
        return unmarked(hint.__value__)
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        inner, more = unmarked(kind)
        return inner, (*marks, *more)
    return hint, ()


def camel_case(name: str) -> str:
    """The name outside of a name here."""
    first, *others = name.removeprefix("is_").split("_")
    return first + "".join(word.capitalize() for word in others)


def optional(kind: Any) -> Any | None:
    """X, when the type is X or None; else None."""
    if get_origin(kind) not in (Union, UnionType):
        return None
    (inner,) = (part for part in get_args(kind) if part is not NoneType)
    return inner


def is_list(kind: Any) -> bool:
    """A tuple, list or sequence of one kind of things."""
    return get_origin(kind) in (tuple, list, Sequence, Collection)


def is_mapping(kind: Any) -> bool:
    """An object whose keys are data."""
    return get_origin(kind) in (dict, Mapping)


# Out --------------------------------------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """What json.dumps takes. Times are UTC in RFC 3339, bytes are base64."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    encoder = _ENCODERS.get(kind)
    if encoder is None:
        encoder = _ENCODERS[kind] = _encoder_of(kind)
    return encoder(value)


type _Encoder = Callable[[Any], Any]

_AS_THEY_ARE = frozenset({str, int, float, bool, NoneType})
_ENCODERS: dict[type, _Encoder] = {}
"""By the type of a value, made when the first of it comes: lists and exports are tens of values a row."""


def _encoder_of(kind: type) -> _Encoder:
    if dataclasses.is_dataclass(kind):
        return _shape_encoder(kind)
    return next(
        (encoder for base, encoder in _ENCODED.items() if issubclass(kind, base)), lambda value: value
    )


def _shape_encoder(shape: type[Any]) -> _Encoder:
    """Fields in their order under their names outside; what may be left out is, when it is None."""
    names = [field.wire_name for field in fields_of(shape)]
    values_of = _getter([field.name for field in fields_of(shape)])
    left_out = {field.wire_name for field in fields_of(shape) if field.is_left_out}

    def encoded(value: Any) -> dict[str, Any]:
        return {
            name: item if type(item) in _AS_THEY_ARE else encode(item)
            for name, item in zip(names, values_of(value), strict=True)
            if item is not None or name not in left_out
        }

    return encoded


def _getter(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """All attributes at once; alone, the library's does not give a sequence."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def _time(value: datetime) -> str:
    moment = value if value.tzinfo is UTC else value.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): item if type(item) in _AS_THEY_ARE else encode(item) for key, item in value.items()}


def _items(value: Collection[Any]) -> list[Any]:
    return [encode(item) for item in value]


_ENCODED: Mapping[type, _Encoder] = {
    datetime: _time,
    bytes: lambda value: base64.b64encode(value).decode(),
    memoryview: lambda value: base64.b64encode(value).decode(),
    UUID: str,
    StrEnum: str,
    Mapping: _mapping,
    list: _items,
    tuple: _items,
    set: _items,
    frozenset: _items,
}


# In ---------------------------------------------------------------------------------------------------------


def decode[T](shape: type[T], sent: object, bounds: Bounds | None = None) -> T:
    """The value that was sent. Raises DocumentInvalid with every problem at once.

    `bounds` are for shapes that carry none themselves: by field name, wherever it stands.
    """
    reader = _Reader(bounds or {})
    value = reader.shape(shape, sent, "")
    if reader.problems:
        raise DocumentInvalid(reader.problems)
    assert isinstance(value, shape)
    return value


_NOTHING: Any = object()
"""What a reader gives for something it has reported a problem about."""


class _Reader:
    """Reads one body, gathering problems."""

    def __init__(self, bounds: Bounds) -> None:
        self.problems: list[Problem] = []
        self._bounds = bounds

    def refuse(self, path: str, message: str, code: str = "invalid") -> Any:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(path=path, message=message, code=code))
        return _NOTHING

    def shape(self, shape: type[Any], sent: object, path: str) -> Any:
        if not isinstance(sent, Mapping):
            return self.refuse(path, f"Takes an object, not {_kind(sent)}.")
        given = self._by_name(shape, sent, path)
        values = {}
        for field in fields_of(shape):
            at = f"{path}.{field.wire_name}" if path else field.wire_name
            if field.name in given:
                values[field.name] = self._of_field(field, given[field.name], at)
            elif field.required:
                self.refuse(at, f"Is required: {_takes(field.type)}.", "missing")
        return _NOTHING if self.problems else shape(**values)

    def _of_field(self, field: Field, sent: object, path: str) -> Any:
        if (most := field.from_one) and type(sent) is int and not 1 <= sent <= most:
            return self.refuse(path, f"Takes a whole number from 1 to {most:,}.")
        return self.value(field.type, sent, path, self._bounds.get(field.name, field.bound))

    def _by_name(self, shape: type[Any], sent: Mapping[Any, object], path: str) -> dict[str, object]:
        known = _fields_by_name(shape)
        given: dict[str, object] = {}
        for key, item in sent.items():
            field = known.get(str(key).lower())
            if field is None:
                message = unknown_field(str(key), [each.wire_name for each in fields_of(shape)])
                self.refuse(below(path, str(key)), message, "unknown_field")
            elif field.name in given:
                message = "Is given twice, in different letter case. Keep one."
                self.refuse(below(path, str(key)), message, "duplicate_key")
            else:
                given[field.name] = item
        return given

    def value(self, kind: Any, sent: object, path: str, most: int | None) -> Any:
        way = _way(kind)
        return way.read(self, way.kind, sent, path, way.bound if most is None else most)

    def maybe(self, kind: Any, sent: object, path: str, most: int | None) -> Any:
        return None if sent is None else self.value(kind, sent, path, most)

    def nested(self, kind: Any, sent: object, path: str, _: int | None) -> Any:
        return self.shape(kind, sent, path)

    def items(self, kind: Any, sent: object, path: str, most: int | None) -> Any:
        most = most or MOST_ITEMS
        if not isinstance(sent, list):
            return self.refuse(path, f"Takes a list, not {_kind(sent)}.")
        if len(sent) > most:
            return self.refuse(
                path, f"Takes at most {most:,} items, not {len(sent):,}. Send it in several parts."
            )
        return tuple(self.value(kind, item, f"{path}[{n}]", None) for n, item in enumerate(sent))

    def mapping(self, kind: Any, sent: object, path: str, _: int | None) -> Any:
        if not isinstance(sent, Mapping):
            return self.refuse(path, f"Takes an object, not {_kind(sent)}.")
        if len(sent) > MOST_ITEMS:
            return self.refuse(path, f"Takes at most {MOST_ITEMS:,} keys, not {len(sent):,}.")
        return {str(key): self.value(kind, item, below(path, str(key)), None) for key, item in sent.items()}

    def word(self, kind: type[StrEnum], sent: object, path: str, _: int | None) -> Any:
        if isinstance(sent, str):
            with contextlib.suppress(ValueError):
                return kind(sent)
        return self.refuse(path, f"Takes {_takes(kind)}.")

    def plain(self, kind: Any, sent: object, path: str, most: int | None) -> Any:
        read = _PLAIN.get(kind)
        if read is None:
            return sent
        try:
            return read(sent, most)
        except ValueError as error:
            return self.refuse(path, str(error))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How values of a type are read."""

    read: Callable[[_Reader, Any, object, str, int | None], Any]
    kind: Any
    """What the reading is told: of lists, mappings and optional values the type of what is in them."""
    bound: int | None


@functools.cache
def _way(kind: Any) -> _Way:
    """Found once for each type: bodies hold thousands of values, and asking a type what it is takes long."""
    kind, marks = unmarked(kind)
    bound = bound_of(marks)
    if inner := optional(kind):
        return _Way(read=_Reader.maybe, kind=inner, bound=bound)
    if is_list(kind):
        return _Way(read=_Reader.items, kind=get_args(kind)[0], bound=bound)
    if is_mapping(kind):
        return _Way(read=_Reader.mapping, kind=get_args(kind)[1], bound=bound)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _Way(read=_Reader.nested, kind=kind, bound=bound)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _Way(read=_Reader.word, kind=kind, bound=bound)
    return _Way(read=_Reader.plain, kind=kind, bound=bound)


def _takes(kind: Any) -> str:
    """What values of a type are, in words."""
    kind, _ = unmarked(kind)
    if inner := optional(kind):
        return _takes(inner)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return f"one of {', '.join(str(word) or '(empty)' for word in kind)}"
    return "a list" if is_list(kind) else _TAKEN.get(kind, "an object")


_TAKEN = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    bytes: "base64",
    datetime: "a time such as 2026-11-29T10:00:00Z",
}


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", NoneType: "null"}
    return names.get(type(value), "a number")


def _text(sent: object, most: int | None) -> str:
    if not isinstance(sent, str):
        raise ValueError(f"Takes text, not {_kind(sent)}.")
    if len(sent) > (most or MOST_CHARACTERS):
        raise ValueError(
            f"Takes at most {most or MOST_CHARACTERS:,} characters, not {len(sent):,}. Shorten it."
        )
    return sent


def _flag(sent: object, _: int | None) -> bool:
    if not isinstance(sent, bool):
        raise ValueError(f"Takes true or false, not {_kind(sent)}.")
    return sent


def _whole(sent: object, most: int | None) -> int:
    if isinstance(sent, bool) or not isinstance(sent, int):
        raise ValueError(f"Takes a whole number, not {_kind(sent) if not isinstance(sent, float) else sent}.")
    most = LARGEST if most is None else most
    least = -most - 1 if most == SIGNED_32 else 0
    if not least <= sent <= most:
        raise ValueError(f"Takes a whole number from {least:,} to {most:,}.")
    return sent


def _number(sent: object, most: int | None) -> float:
    if isinstance(sent, bool) or not isinstance(sent, int | float):
        raise ValueError(f"Takes a number, not {_kind(sent)}.")
    most = LARGEST if most is None else most
    if not 0 <= sent <= most:
        raise ValueError(f"Takes a number from 0 to {most:,}.")
    return float(sent)


def _bytes(sent: object, most: int | None) -> bytes:
    try:
        read = base64.b64decode(sent if isinstance(sent, str) else "?", validate=True)
    except ValueError as error:
        raise ValueError("Takes base64. Encode it so.") from error
    if len(read) > (most or MOST_CHARACTERS):
        raise ValueError(f"Takes at most {most or MOST_CHARACTERS:,} bytes, not {len(read):,}.")
    return read


_PLAIN: dict[Any, Callable[[object, int | None], Any]] = {
    str: _text,
    bool: _flag,
    int: _whole,
    float: _number,
    bytes: _bytes,
}
