"""Kinds of values a filter takes: read from the text of an address, and written back."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from uuid import UUID

from policies.quantity import QuantityError, format_bytes, parse_bytes, parse_millicores

MOST_CHARACTERS = 1_024
"""Of one value."""
LARGEST = 2**63 - 1
_YEARS = range(1970, 9_000)
"""Nearer to either end of time, zones lead out of it."""
_LONGEST_AGE = timedelta(days=36_500)
_JOB_ID = re.compile("[0-7][0-9a-hjkmnp-tv-z]{25}")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_AGE = re.compile(r"-([0-9]{1,9})([smhdw])")
_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class Ago:
    """So long before whenever the question is asked."""

    length: timedelta


type Value = str | int | float | bool | datetime | Ago | UUID


class Kind(StrEnum):
    """What sort of values a field has."""

    TEXT = "text"
    WORD = "word"
    """One of a few, in any letter case."""
    JOB_ID = "job id"
    RUN_ID = "run id"
    WHOLE = "whole number"
    NUMBER = "number"
    CPU = "cores"
    BYTES = "bytes"
    TIME = "time"
    FLAG = "yes or no"

    @property
    def is_ordered(self) -> bool:
        """Its values are less or greater than others."""
        return self in (Kind.WHOLE, Kind.NUMBER, Kind.CPU, Kind.BYTES, Kind.TIME)


TAKES: Mapping[Kind, str] = {
    Kind.TEXT: f"text of at most {MOST_CHARACTERS:,} characters",
    Kind.JOB_ID: "a job id of 26 letters and digits",
    Kind.RUN_ID: "a run id such as 0003a10b-ebc3-4000-8000-0000001d0859",
    Kind.WHOLE: "a whole number such as 137",
    Kind.NUMBER: "a number such as 3600 or 0.5",
    Kind.CPU: "cores such as 500m or 2",
    Kind.BYTES: "an amount such as 512Mi or 2G",
    Kind.TIME: "a time such as 2026-11-29T10:00:00Z, a day such as 2026-11-29, or an age such as -12h or -7d",
    Kind.FLAG: "yes or no",
}
"""In words, for whoever gave something else. A word's are its words."""


def read_value(kind: Kind, text: str, words: tuple[str, ...] = ()) -> Value:
    """The value a text means. Raises ValueError for a text that is none."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(text[:MOST_CHARACTERS])
    text = text.lower() if kind is Kind.WORD else text
    if words and text not in words:
        raise ValueError(text)
    return _READ[kind](text)


def written_value(kind: Kind, value: Value) -> str:
    """The text that is read as this value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Ago):
        return _written_age(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, int) and kind is Kind.BYTES:
        return format_bytes(value)
    if isinstance(value, int) and kind is Kind.CPU:
        return f"{value}m" if value % 1_000 else str(value // 1_000)
    return str(value)


def _job_id(text: str) -> str:
    if not _JOB_ID.fullmatch(text.lower()):
        raise ValueError(text)
    return text.lower()


def _run_id(text: str) -> UUID:
    if len(text) != len(str(UUID(int=0))):
        raise ValueError(text)
    return UUID(text)


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text) or abs(number := int(text)) > LARGEST:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or not text.isascii() or "_" in text:
        raise ValueError(text)
    return number


def _quantity(parse: Callable[[str], int]) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            amount = parse(text)
        except QuantityError as error:
            raise ValueError(text) from error
        return max(min(amount, LARGEST), -LARGEST)

    return read


def meant_age(text: str) -> str:
    """The age a text without its minus sign may mean, `-12h` for `12h`; empty where it means none."""
    return f"-{text}" if _AGE.fullmatch(f"-{text}") else ""


def _time(text: str) -> datetime | Ago:
    if found := _AGE.fullmatch(text):
        return _ago(int(found[1]) * _UNITS[found[2]])
    # The plus sign of an offset arrives as a space when somebody typed it into an address.
    text = re.sub(r" (?=[0-9]{2}:?[0-9]{2}$)", "+", text) if "T" in text else text
    moment = _day(text) or datetime.fromisoformat(text)
    if moment.year not in _YEARS:
        raise ValueError(text)
    # The database takes no offset of sixteen hours or more.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _day(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None


def _ago(seconds: int) -> Ago:
    if seconds > _LONGEST_AGE.total_seconds():
        raise ValueError("longer ago than anything")
    return Ago(timedelta(seconds=seconds))


def _written_age(age: Ago) -> str:
    seconds = int(age.length.total_seconds())
    unit = next(name for name, size in _UNITS.items() if seconds % size == 0)
    return f"-{seconds // _UNITS[unit]}{unit}"


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(text)
    return _FLAGS[text.lower()]


_READ: Mapping[Kind, Callable[[str], Value]] = {
    Kind.TEXT: str,
    Kind.WORD: str,
    Kind.JOB_ID: _job_id,
    Kind.RUN_ID: _run_id,
    Kind.WHOLE: _whole,
    Kind.NUMBER: _number,
    Kind.CPU: _quantity(parse_millicores),
    Kind.BYTES: _quantity(parse_bytes),
    Kind.TIME: _time,
    Kind.FLAG: _flag,
}
