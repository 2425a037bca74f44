"""Answers as rows of a table: one column for each plain field, nested ones by their path, the rest as JSON."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lookout.api.shapes import fields_of, optional


def columns_of(view: type[Any], fields: Sequence[str] = (), *, before: str = "") -> tuple[str, ...]:
    """The columns of a view, `lastRun.node` for a field of a field; of these fields only, or of all."""
    found: list[str] = []
    for field in fields_of(view):
        if not fields or field.wire_name in fields:
            kind, name = optional(field.type) or field.type, f"{before}{field.wire_name}"
            nested = isinstance(kind, type) and dataclasses.is_dataclass(kind)
            found += columns_of(kind, before=f"{name}.") if nested else [name]
    return tuple(found)


def csv_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Each row as a line of CSV."""
    return (csv_line(_cell(row, column) for column in columns) for row in rows)


def csv_line(cells: Iterable[Any]) -> str:
    """One line of CSV (RFC 4180), with its end."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _cell(row: Mapping[str, Any], column: str) -> Any:
    value: Any = row
    for name in column.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value
