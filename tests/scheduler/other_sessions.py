"""Sessions beside the test's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


@contextmanager
def another_session() -> Iterator["psycopg.Connection[Any]"]:
    """Whoever else is at the database; what it holds it holds to the end of the block."""
    parameters = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(**{name: parameters[name] for name in names if name in parameters}) as session:
        yield session
