"""Answers as rows of a table: one column for each plain field, nested ones by their path, the rest as JSON."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Mapping, Sequence
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


def csv_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The rows as lines of CSV (RFC 4180)."""
    paths = [column.split(".") for column in columns]
    lines = io.StringIO()
    csv.writer(lines).writerows([_cell(row, path) for path in paths] for row in rows)
    return lines.getvalue()


def csv_line(cells: Iterable[str]) -> str:
    """One line of CSV, with its end."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _cell(row: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = row
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value
