"""One statement for many rows: an UPDATE whose new values arrive as a table."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models
from django.db.models.expressions import RawSQL

from scheduler.models.ulids import UlidField, uuid_of


def update_rows(rows: Sequence[models.Model], fields: Sequence[str]) -> None:
    """Write the named fields of rows of one model, by their primary keys. No row, no statement.

    The number of statements and of parameters does not depend on the number of rows.
    """
    if not rows:
        return
    model = type(rows[0])._meta
    key = model.pk
    assert key is not None
    columns: list[models.Field[Any, Any]] = [key, *(_column(model.get_field(name)) for name in fields)]
    types = ", ".join(f"{_quoted(column)} {_type(column)}" for column in columns)
    assignments = ", ".join(f"{_quoted(column)} = new.{_quoted(column)}" for column in columns[1:])
    table = connection.ops.quote_name(model.db_table)
    names, values = [_name(column) for column in columns], _reader(columns, _AS_JSON)
    records = [dict(zip(names, values(row), strict=True)) for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} AS old SET {assignments} "  # noqa: S608 - names come from our models
            f"FROM jsonb_to_recordset(%s::jsonb) AS new({types}) "
            f"WHERE old.{_quoted(key)} = new.{_quoted(key)}",
            [json_text(records)],
        )


def uuid_array(ids: Iterable[str]) -> str:
    """Ids, as the database writes a uuid, as the text of a `uuid[]`: made in a fraction of the time a list takes."""
    return "{" + ",".join(ids) + "}"


def among(ids: Iterable[UUID]) -> RawSQL:
    """For `id__in`: one parameter, where a list of thousands makes a statement that takes long to put together."""
    return RawSQL("SELECT unnest(%s::uuid[])", [uuid_array(map(str, ids))])


def turns(groups: Iterable[Sized]) -> str:
    """The number of its group for each member of each, as the text of an `int[]`: it joins ids with what they share."""
    return "{" + ",".join(str(turn) for turn, group in enumerate(groups) for _ in range(len(group))) + "}"


def json_text(value: object) -> str:
    """The value as JSON, with times to the microsecond."""
    return json.dumps(value, cls=_Encoder)


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Insert the rows by COPY, which takes a fraction of the time of INSERT. No row, no statement.

    Constraints hold as for any insert; the first row that breaks one fails the statement.
    """
    names = ", ".join(map(connection.ops.quote_name, columns))
    waiting = iter(rows)
    if (first := next(waiting, None)) is None:
        return
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        copy.write_row(first)
        for row in waiting:
            copy.write_row(row)


def insert_rows(rows: Sequence[models.Model]) -> None:
    """Insert rows of one model by COPY, keys included. No row, no statement."""
    if not rows:
        return
    model = type(rows[0])._meta
    columns: list[models.Field[Any, Any]] = list(model.concrete_fields)
    values = _reader(columns, _AS_COPIED)
    copy_rows(model.db_table, [_name(column) for column in columns], map(values, rows))


class _Encoder(DjangoJSONEncoder):
    """Keeps the microseconds that the stock encoder cuts to thousandths."""

    def default(self, o: object) -> object:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)


type _Converters = Mapping[type[models.Field[Any, Any]], Callable[[Any], object]]

_AS_JSON: _Converters = {UlidField: lambda ulid: str(uuid_of(ulid)), models.DateTimeField: datetime.isoformat}
_AS_COPIED: _Converters = {UlidField: uuid_of, models.JSONField: json.dumps}


def _reader(
    columns: Sequence["models.Field[Any, Any]"], converters: _Converters
) -> Callable[[models.Model], list[object]]:
    """What takes the columns' values out of a row. Made once for many rows, so that each costs little."""
    get = attrgetter(*(column.attname for column in columns))
    converted = [
        (number, convert)
        for number, column in enumerate(columns)
        if (convert := converters.get(type(_target(column))))
    ]

    def read(row: models.Model) -> list[object]:
        values = list(get(row))
        for number, convert in converted:
            if values[number] is not None:
                values[number] = convert(values[number])
        return values

    return read


def _target(column: "models.Field[Any, Any]") -> "models.Field[Any, Any]":
    """What a foreign key holds, through foreign keys that are keys themselves."""
    while isinstance(column, models.ForeignKey):
        column = column.target_field
    return column


def _column(field: object) -> "models.Field[Any, Any]":
    assert isinstance(field, models.Field)
    return field


def _name(column: "models.Field[Any, Any]") -> str:
    return str(column.column)


def _quoted(column: "models.Field[Any, Any]") -> str:
    return connection.ops.quote_name(_name(column))


def _type(column: "models.Field[Any, Any]") -> str:
    kind = column.rel_db_type(connection) if column.primary_key else column.db_type(connection)
    return str(kind)
