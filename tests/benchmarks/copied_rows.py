"""Rows that are copies of one that Tack wrote, some of their columns their own: what to select for them."""

from collections.abc import Mapping
from typing import Any

import psycopg

type Changes = Mapping[str, str]
"""Column → what stands there instead of what the template has, as SQL."""

_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
     WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


def selected(line: psycopg.Connection[Any], table: str, changes: Changes) -> str:
    """All columns of the table, in their order, from a template `t`, but for the changes.

    Whatever columns the table has, the copies have them too; making JSON of each row would take a hundred times as long.
    """
    columns = line.execute(_COLUMNS, [table]).fetchall()
    return ", ".join(
        f"CAST({changes[name]} AS {kind}) AS {name}" if name in changes else f"t.{name}"
        for name, kind in columns
    )
