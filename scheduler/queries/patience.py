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
    """Statements of the block may take so long each, and what they see is one and the same moment.

    Raises TooMuchAsked with `narrow`, which says how to ask for less.
    """
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{seconds * 1000:.0f}"])
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooMuchAsked(narrow) from error
        raise
