"""The description of the API: shapes to OpenAPI, and what each operation takes and answers."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, get_args
from uuid import UUID

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema

from lookout.api.bodies import JSON, YAML
from lookout.api.errors import Refusal
from lookout.api.filter_schema import filter_parameters
from lookout.api.shapes import (
    Field,
    FromOne,
    Shaped,
    bound_of,
    encode,
    fields_of,
    is_list,
    is_mapping,
    optional,
    unmarked,
)
from scheduler.filters import Grammar

type Schema = dict[str, Any]

_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    UUID: {"type": "string", "format": "uuid"},
}
_BOUND = {"string": "maxLength", "array": "maxItems", "integer": "maximum", "number": "maximum"}


def described(
    name: str,
    *,
    tag: str,
    answer: Any = None,
    status: int = 200,
    body: type[Any] | None = None,
    yaml: bool = False,
    query: type[Any] | None = None,
    filters: Grammar | None = None,
    refusals: tuple[int, ...] = (),
    others: Mapping[Any, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    example: object = None,
    sent: Mapping[str, Any] | None = None,
    texts: Mapping[str, str] | None = None,
) -> Callable[[Any], Any]:
    """Describe an operation. Its docstring gives the summary; 401 and 403 need not be named.

    With `filters` it also takes the fields of the filter language. `example` is an answer, of the shape of `answer`;
    `sent` a body that is sent, `texts` answers of other media types by those.
    """
    media = (JSON, YAML[0]) if yaml else (JSON,)
    responses = {**({status: _answer(answer)} if answer else {}), **(others or {})}
    responses |= dict.fromkeys((*refusals, 401, 403), Refusal)

    def describe(method: Any) -> Any:
        summary, _, rest = (inspect.getdoc(method) or "").partition("\n\n")
        return extend_schema(
            operation_id=name,
            tags=[tag],
            summary=" ".join(summary.split()),
            description=rest,
            parameters=[
                *(filter_parameters(filters) if filters else ()),
                *(_parameters(query) if query else ()),
                *_header_parameters(headers or {}),
            ],
            request=dict.fromkeys(media, body) if body else None,
            responses=responses,
            examples=[*_examples(example, sent, status), *_text_examples(texts or {}, status)],
        )(method)

    return describe


def _examples(answered: object, sent: Mapping[str, Any] | None, status: int) -> list[OpenApiExample]:
    found = []
    if sent is not None:
        found.append(OpenApiExample("A request", dict(sent), request_only=True))
    if answered is not None:
        value, codes = encode(answered), [str(status)]
        found.append(OpenApiExample("An answer", value, response_only=True, status_codes=codes))
    return found


def _text_examples(texts: Mapping[str, str], status: int) -> Iterator[OpenApiExample]:
    for media, text in texts.items():
        codes = [str(status)]
        yield OpenApiExample("An answer", text, response_only=True, status_codes=codes, media_type=media)


def _answer(shape: type[Any]) -> Any:
    """An answer without fields is an empty object; left to itself the generator would say there is none."""
    return shape if fields_of(shape) else {"type": "object", "description": inspect.getdoc(shape)}


def _parameters(query: type[Any]) -> list[OpenApiParameter]:
    told = told_of_fields(query)
    return [
        OpenApiParameter(
            field.wire_name,
            schema_of(field.type, field),
            required=field.required,
            description=told.get(field.name, ""),
        )
        for field in fields_of(query)
    ]


def _header_parameters(headers: Mapping[str, str]) -> list[OpenApiParameter]:
    return [
        OpenApiParameter(name, {"type": "string"}, OpenApiParameter.HEADER, description=told)
        for name, told in headers.items()
    ]


def schema_of(kind: Any, field: Field | None = None, *, found: list[type[Any]] | None = None) -> Schema:
    """The schema of a type; shapes and enums it refers to are added to `found`, or written out without it."""
    kind, marks = unmarked(kind)
    marks = (*(field.marks if field else ()), *marks)
    shaped = next((mark.shape for mark in marks if isinstance(mark, Shaped)), None)
    schema = _schema_of_kind(shaped or kind, found)
    most = bound_of(marks)
    least = {"minimum": 1} if any(isinstance(mark, FromOne) for mark in marks) else {}
    return schema if most is None else schema | {_BOUND[schema["type"]]: most} | least


def _schema_of_kind(kind: Any, found: list[type[Any]] | None) -> Schema:
    inner = optional(kind)
    if inner is not None:
        schema = schema_of(inner, found=found)
        return {"allOf": [schema], "nullable": True} if "$ref" in schema else schema | {"nullable": True}
    if is_list(kind):
        return {"type": "array", "items": schema_of(get_args(kind)[0], found=found)}
    if is_mapping(kind):
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], found=found)}
    if not isinstance(kind, type) or not (dataclasses.is_dataclass(kind) or issubclass(kind, StrEnum)):
        return dict(_PLAIN.get(kind, {}))
    if found is None:
        return _schema_of_component(kind, [], is_sent=False)
    found.append(kind)
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _schema_of_component(kind: type[Any], found: list[type[Any]], *, is_sent: bool) -> Schema:
    if issubclass(kind, StrEnum):
        return {
            "type": "string",
            "description": inspect.getdoc(kind) or "",
            "enum": [str(word) for word in kind],
        }
    return schema_of_shape(kind, found, is_sent=is_sent)


def schema_of_shape(shape: type[Any], found: list[type[Any]], *, is_sent: bool) -> Schema:
    """The schema of a dataclass: names as they travel, descriptions from the docstrings of class and fields."""
    told = told_of_fields(shape)
    properties = {}
    for field in fields_of(shape):
        schema = schema_of(field.type, field, found=found)
        if field.name in told:
            schema = ({"allOf": [schema]} if "$ref" in schema else schema) | {"description": told[field.name]}
        properties[field.wire_name] = schema
    required = [field.wire_name for field in fields_of(shape) if field.required]
    described = {"type": "object", "description": inspect.getdoc(shape) or "", "properties": properties}
    return (
        described
        | ({"required": required} if required else {})
        | ({"additionalProperties": False} if is_sent else {})
    )


def told_of_fields(shape: type[Any]) -> dict[str, str]:
    """The docstrings below the fields of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(shape))).body[0]
    assert isinstance(tree, ast.ClassDef)
    told = {}
    for line, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            told[line.target.id] = inspect.cleandoc(str(below.value.value))
    return told


class ShapeExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Lets drf-spectacular describe our shapes wherever it takes serializers."""

    @classmethod
    def _matches(cls, target: Any) -> bool:
        return isinstance(target, type) and dataclasses.is_dataclass(target)

    def get_name(self, auto_schema: Any, direction: Any) -> str:
        return str(self.target.__name__)

    def map_serializer(self, auto_schema: Any, direction: Any) -> Schema:
        left: list[type[Any]] = []
        is_sent = direction == "request"
        schema = schema_of_shape(self.target, left, is_sent=is_sent)
        while left:
            shape = left.pop()
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=shape.__name__, type=ResolvedComponent.SCHEMA, object=shape, schema={}
            )
            if component not in auto_schema.registry:
                component.schema = _schema_of_component(shape, left, is_sent=is_sent)
                auto_schema.registry.register_on_missing(component)
        return schema
