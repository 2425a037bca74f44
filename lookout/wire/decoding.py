"""JSON answers to frozen dataclasses: camelCase keys to fields, nested values and tuples by their types.

Keys nobody asked for are left alone, so that a newer Tack can say more; a missing or null one takes the field's default.
"""

import types
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints


class Undecodable(ValueError):
    """The answer does not have the shape asked for."""


def decode[T](kind: type[T], answer: object) -> T:
    """The answer as a value of a dataclass. A field named `json` keeps the answer as it came. Raises Undecodable."""
    if not isinstance(answer, Mapping):
        raise Undecodable(f"{kind.__name__} is {type(answer).__name__}, not an object")
    hints = _hints(cast(Hashable, kind))
    values: dict[str, Any] = {}
    for field in fields(cast(Any, kind)):
        if field.name == "json":
            values["json"] = answer
        elif answer.get(key := camel(field.name)) is not None:
            values[field.name] = _value(hints[field.name], answer[key], place=f"{kind.__name__}.{key}")
        elif _is_required(field):
            raise Undecodable(f"{kind.__name__} lacks {key}")
    return kind(**values)


def camel(name: str) -> str:
    """`retry_limit` as `retryLimit`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(cast(Any, kind))


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value(hint: Any, answer: object, *, place: str) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        choices = [choice for choice in get_args(hint) if choice is not type(None)]
        return _value(choices[0], answer, place=place)
    if get_origin(hint) is tuple:
        if not isinstance(answer, list):
            raise Undecodable(f"{place} is no list")
        return tuple(_value(get_args(hint)[0], item, place=place) for item in answer)
    if hint is Any or get_origin(hint) is not None:
        return answer
    if is_dataclass(hint):
        return decode(cast(type[Any], hint), answer)
    return _scalar(hint, answer, place=place)


def _scalar(hint: Any, answer: object, *, place: str) -> Any:
    if hint is datetime and isinstance(answer, str):
        try:
            return datetime.fromisoformat(answer)
        except ValueError as error:
            raise Undecodable(f"{place} is no time: {answer}") from error
    if hint is float and type(answer) is int:
        return float(answer)
    # `True` is an int to Python and not to us.
    if type(answer) is hint:
        return answer
    raise Undecodable(f"{place} is {type(answer).__name__}, not {hint.__name__}")
