"""The filter language in the description of the API: a parameter for each field, with its comparisons and an example."""

from collections.abc import Iterator, Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter

from scheduler.filters import FilterField, Grammar, Kind

_EXAMPLES: Mapping[Kind, str] = {
    Kind.JOB_ID: "01m8j53gvqm9s346q3d25vt4f5",
    Kind.RUN_ID: "0003a10b-ebc3-4000-8000-0000001d0859",
    Kind.WHOLE: "1",
    Kind.NUMBER: "3600",
    Kind.CPU: "500m",
    Kind.BYTES: "512Mi",
    Kind.TIME: "-12h",
    Kind.FLAG: "yes",
}
_OF_FIELDS = {
    "queue": "nightly", "jobSet": "renders/2026-11-29", "owner": "alice", "namespace": "default",
    "category": "oom", "subcategory": "limit", "node": "gpu-07", "executor": "local", "pool": "default",
    "policy": "oom-grow", "error": "No space left on device", "reason": "OOM", "exitCode": "137", "signal": "9",
}  # fmt: skip


COMPARISONS = "x-comparisons"
"""What may stand between name and value, with spaces between. OpenAPI has a word for `=` only."""


def filter_parameters(grammar: Grammar) -> Iterator[OpenApiParameter]:
    """Every field as a parameter of the address."""
    for field in grammar.fields.values():
        name = f"{field.shown_name}>" if field.kind is Kind.TIME else field.shown_name
        yield OpenApiParameter(name, _schema(field), description=_told(field), required=False)


def _schema(field: FilterField) -> dict[str, Any]:
    example = _OF_FIELDS.get(field.name) or next(iter(field.words), "") or _EXAMPLES.get(field.kind, "")
    item: dict[str, Any] = {"type": "string"}
    if field.words:
        item["enum"] = list(field.words)
    single = field.is_search or field.kind is Kind.TIME
    schema = item if single else {"type": "array", "items": item, "maxItems": 100}
    schema = {**schema, COMPARISONS: " ".join(field.signs)}
    return schema | ({"example": example if single else [example]} if example else {})


def _told(field: FilterField) -> str:
    told = f"{field.told[0].upper()}{field.told[1:]}. Takes {field.takes}."
    if field.is_search:
        return told
    return f"{told} Compared by {', '.join(f'`{sign}`' for sign in field.signs)}."
