"""Job ids: ULIDs, stored as the database's uuid (16 bytes), shown as 26 lower-case characters."""

import os
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]
_ULID = re.compile(f"[{ALPHABET}]{{26}}")
_AS_PYTHON_COUNTS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")


def new_ulid() -> str:
    """A fresh id: 48 bits of milliseconds, 80 bits of chance; sorts by time of making."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    return _shown(number)


def ulid_of(stored: uuid.UUID) -> str:
    """The 26 characters of a stored id."""
    return _shown(stored.int)


def ulid_of_text(stored: str) -> str:
    """The 26 characters of a stored id as the database writes it."""
    return _shown(int(stored.replace("-", ""), 16))


def uuid_of(ulid: str) -> uuid.UUID:
    """The stored form. Letter case is forgiven; anything but a ULID raises ValueError."""
    text = ulid.lower()
    if not _ULID.fullmatch(text):
        raise ValueError(f"{ulid[:40]!r} is not a job id: job ids have 26 letters and digits.")
    number = int(text.translate(_AS_PYTHON_COUNTS), 32)
    if number >> 128:
        raise ValueError(f"{ulid!r} is not a job id: its first character is at most 7.")
    return uuid.UUID(int=number)


def _shown(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


if TYPE_CHECKING:
    _TextField = models.Field[str, str]
else:
    _TextField = models.Field


class UlidField(_TextField):
    """A job id: text in Python, uuid in PostgreSQL."""

    description = "ULID"

    def db_type(self, connection: Any) -> str:
        return "uuid"

    def rel_db_type(self, connection: Any) -> str:
        return "uuid"

    def from_db_value(self, value: uuid.UUID | None, *_: Any) -> str | None:
        return None if value is None else ulid_of(value)

    def to_python(self, value: Any) -> str | None:
        if value is None or value == "":
            return None
        try:
            return ulid_of(value if isinstance(value, uuid.UUID) else uuid_of(str(value)))
        except ValueError as error:
            raise ValidationError(str(error)) from error

    def get_prep_value(self, value: Any) -> uuid.UUID | None:
        if value is None or isinstance(value, uuid.UUID):
            return value
        return uuid_of(str(value))
