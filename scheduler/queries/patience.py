"""Questions that may take long: each has a time it may take, and a sentence about how to ask for less."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from scheduler.errors import TooMuchAsked

SECONDS = 10.0
"""What one question about the history may take of the database."""


@contextmanager
def within(seconds: float = SECONDS, *, narrow: str, parallel: bool = False) -> Iterator[None]:
    """Statements of the block may take so long each, and are one transaction.

    `parallel` ones may have several workers of the database: for what reads much. For the first rows of a list
    to set them up takes longer than to find the rows. Raises TooMuchAsked with `narrow`, which says how to ask for less.
    """
    allowed = {"statement_timeout": f"{seconds * 1000:.0f}"} | ({} if parallel else _ALONE)
    is_part = connection.in_atomic_block
    try:
        with transaction.atomic():
            before = _allow(allowed)
            yield
            if is_part:  # of a transaction that goes on; else the end of it is the end of this
                _allow(before)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooMuchAsked(narrow) from error
        raise


_ALONE = {"max_parallel_workers_per_gather": "0"}
_ALLOW = """
    SELECT current_setting(name), name, set_config(name, value, true) FROM jsonb_each_text(%s) AS allowed(name, value)
"""


def _allow(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the database from now on in this transaction; returns what they were before."""
    with connection.cursor() as cursor:
        cursor.execute(_ALLOW, [json.dumps(settings)])
        return {name: before for before, name, _ in cursor.fetchall()}
