"""Questions that may take long: each has a time it may take, and a sentence about how to ask for less."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from scheduler.errors import TooMuchAsked

SECONDS = 10.0
"""What one question about the history may take of the database."""


@contextmanager
def within(seconds: float = SECONDS, *, narrow: str) -> Iterator[None]:
    """Statements of the block may take so long each, and are one transaction.

    Raises TooMuchAsked with `narrow`, which says how to ask for less.
    """
    is_part = connection.in_atomic_block
    try:
        with transaction.atomic():
            before = _allow(f"{seconds * 1000:.0f}")
            yield
            if is_part:  # of a transaction that goes on; else the end of it is the end of this
                _allow(before)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooMuchAsked(narrow) from error
        raise


def _allow(time: str) -> str:
    """What a statement may take from now on in this transaction; returns what it could take before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)", [time]
        )
        before, _ = cursor.fetchone()
    return str(before)
