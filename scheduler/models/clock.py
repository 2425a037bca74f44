"""The one clock of the rows: PostgreSQL's, UTC."""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """The moment this statement runs, by the database's clock; the same for everybody."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now
