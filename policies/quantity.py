"""Kubernetes quantities as exact numbers: read them, round them up where they are reserved, write them back."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

__all__ = [
    "MAX_QUANTITY",
    "QuantityError",
    "format_bytes",
    "format_like",
    "measured_bytes",
    "parse_bytes",
    "parse_millicores",
    "parse_quantity",
    "rounded_bytes",
]

MAX_QUANTITY = 2**63 - 1
"""The largest quantity; what is written larger counts as this, as it does in Kubernetes."""

_REMEMBERED = 4_096  # texts; thousands of jobs write the same few amounts
_LONGEST = 128  # characters; no honest quantity is longer, and reading digits costs their square
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_SMALL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3)}
_MULTIPLIERS: dict[str, Fraction] = {"": Fraction(1), **_SMALL} | {
    suffix: Fraction(size) for suffix, size in (_BINARY | _DECIMAL).items()
}


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity."""

    def __init__(self, text: str) -> None:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        super().__init__(
            f"{shown!r} is not a quantity. Write a number with a unit, such as 512Mi, 2Gi or 1G."
        )


@lru_cache(_REMEMBERED)
def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity. Raises QuantityError; what exceeds MAX_QUANTITY counts as that."""
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(text)
    digits = int(match["whole"] + (match["part"] or ""))
    places = len(match["part"] or "")
    size = _scaled(digits, places, match["suffix"] or "", int(match["exponent"] or 0))
    size = min(size, Fraction(MAX_QUANTITY))
    return -size if match["sign"] == "-" else size


def _scaled(digits: int, places: int, suffix: str, exponent: int) -> Fraction:
    if digits == 0:
        return Fraction(0)
    # Beyond these bounds every value is capped, or rounds up to the smallest, whatever the digits are.
    exponent = max(min(exponent - places, 2 * _LONGEST), -2 * _LONGEST)
    return Fraction(digits) * Fraction(10) ** exponent * _MULTIPLIERS[suffix]


def parse_bytes(text: str) -> int:
    """Whole bytes of a quantity, rounded up. Raises QuantityError."""
    return math.ceil(parse_quantity(text))


def parse_millicores(text: str) -> int:
    """Thousandths of a core of a CPU quantity, rounded up. Raises QuantityError."""
    return math.ceil(parse_quantity(text) * 1000)


def format_bytes(size: int) -> str:
    """The shortest quantity that is exactly this many bytes, binary units preferred: 64Mi, 1G, 1000001."""
    return min(
        (_in_units(size, _BINARY), _in_units(size, _DECIMAL), str(size)),
        key=len,
    )


def format_like(size: int, written: str) -> str:
    """The same number of bytes in the unit family (binary or decimal) that `written` uses."""
    return _in_units(size, _BINARY if written.endswith("i") else _DECIMAL)


def rounded_bytes(size: int) -> str:
    """Bytes for reading: exact where that is short, else one decimal of the largest binary unit (17.6Gi)."""
    exact = format_bytes(size)
    return exact if len(exact) <= 6 else measured_bytes(size)


def measured_bytes(size: int) -> str:
    """Bytes that were measured, for reading: at most one decimal of the largest binary unit (1.4Mi, 64Mi)."""
    if abs(size) < 2**10:
        return str(size)
    unit, step = next(
        ((unit, step) for unit, step in reversed(_BINARY.items()) if abs(size) >= step), ("Ki", 2**10)
    )
    tenths = round(Fraction(size * 10, step))
    return f"{tenths // 10}.{tenths % 10}{unit}" if tenths % 10 else f"{tenths // 10}{unit}"


def _in_units(size: int, units: dict[str, int]) -> str:
    for suffix, step in reversed(units.items()):
        if size and size % step == 0:
            return f"{size // step}{suffix}"
    return str(size)
