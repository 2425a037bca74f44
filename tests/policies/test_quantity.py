"""Quantities: the grammar of Kubernetes, exact values, rounded up to whole units."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.quantity import (
    MAX_QUANTITY,
    QuantityError,
    format_bytes,
    format_like,
    parse_bytes,
    parse_millicores,
    parse_quantity,
    rounded_bytes,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64Mi", 67108864),
        ("1G", 10**9),
        ("1.5Gi", 1610612736),
        ("100m", 1),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1e-3", 1),
        ("5.", 5),
        (".5Ki", 512),
        ("+5Gi", 5 * 2**30),
        ("-1", -1),
        ("0", 0),
        ("1n", 1),
        ("9223372036854775807", MAX_QUANTITY),
        ("16Ei", MAX_QUANTITY),
        ("1e999999999", MAX_QUANTITY),
        ("1e-999999999", 1),
        ("0e999999999", 0),
    ],
)
def test_a_quantity_is_read_exactly_and_rounded_up_to_bytes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "+",
        "1K",
        "1KB",
        "512MB",
        "1mi",
        "1 Gi",
        " 1",
        "1\n",
        "1e",
        "1e1.5",
        "--1",
        "1Gi2",
        "٣",
        "0x1",
        "1_0",
    ],
)
def test_what_is_no_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(text)


def test_digits_without_end_are_refused_at_once() -> None:
    with pytest.raises(QuantityError):
        parse_quantity("9" * 1_000_000)


@pytest.mark.parametrize(("text", "millicores"), [("500m", 500), ("0.1", 100), ("2", 2000), ("1u", 1)])
def test_cores_are_read_in_thousandths(text: str, millicores: int) -> None:
    assert parse_millicores(text) == millicores


def test_a_value_between_units_stays_exact() -> None:
    assert parse_quantity("0.1") == Fraction(1, 10)


@pytest.mark.parametrize(
    ("size", "text"), [(67108864, "64Mi"), (10**9, "1G"), (1000001, "1000001"), (0, "0"), (1024, "1Ki")]
)
def test_bytes_are_written_in_the_shortest_exact_form(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(("size", "text"), [(2**34, "16Gi"), (18897856103, "17.6Gi"), (1234567, "1.2Mi")])
def test_bytes_for_reading_are_short(size: int, text: str) -> None:
    assert rounded_bytes(size) == text


@given(st.integers(0, MAX_QUANTITY))
def test_what_is_written_reads_back_the_same(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size
    assert parse_bytes(format_like(size, "1Gi")) == size
    assert parse_bytes(format_like(size, "1G")) == size
