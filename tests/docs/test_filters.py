"""The reference of filters names every field with its values and comparisons, and every order."""

import re

import pytest

from scheduler.client_events import CAUSES
from scheduler.filters import DECISIONS, JOBS, MOST_CONDITIONS, MOST_VALUES, FilterField, Scope, job_filter_of
from scheduler.filters.orders import SORTS
from tests.docs.reading import REFERENCE, rows, text_of

FILTERS = REFERENCE / "filters.md"


def _rows(fields: list[FilterField], *, scoped: bool) -> list[list[str]]:
    return [
        [
            f"`{field.shown_name if scoped else field.name}`",
            field.told,
            str(field.kind),
            " ".join(f"`{sign}`" for sign in field.signs),
        ]
        for field in fields
    ]


@pytest.mark.parametrize(
    ("after", "fields"),
    [
        ("## Jobs", [field for field in JOBS.fields.values() if field.scope is Scope.OWN]),
        ("## Decisions", list(DECISIONS.fields.values())),
    ],
)
def test_every_field_is_there_with_what_it_takes(after: str, fields: list[FilterField]) -> None:
    assert rows(FILTERS, after=after) == _rows(fields, scoped=True)


@pytest.mark.parametrize(("after", "failures"), [("## Runs, and failures", False), ("Of failures:", True)])
def test_every_field_of_runs_is_there_with_what_it_takes(after: str, failures: bool) -> None:
    fields = [field for field in JOBS.fields.values() if field.scope is Scope.ANY]
    expected = [field for field in fields if field.of_failure == failures]
    assert rows(FILTERS, after=after) == _rows(expected, scoped=False)


def test_every_word_is_there() -> None:
    words = {field.name: field.words for field in JOBS.fields.values() if field.words}
    found = {row[0].strip("`"): row[1] for row in rows(FILTERS, after="## Words")}
    assert found == {name: ", ".join(f"`{word}`" for word in said) for name, said in words.items()}
    assert set(words["reason"]) == set(CAUSES)


def test_every_order_is_there() -> None:
    found = {row[0]: re.findall(r"`(\w+)`", row[1]) for row in rows(FILTERS, after="## Order")}
    assert found == {things: list(names) for things, names in SORTS.items()}


def test_limits_are_the_ones_that_hold() -> None:
    assert f"at most {MOST_CONDITIONS} conditions, a condition at most {MOST_VALUES} values" in text_of(
        FILTERS
    )


def test_the_examples_are_read() -> None:
    examples = re.findall(r"`([a-zA-Z]+(?:\.[\w./-]+)?[!^*?<>]*=[^`]*[\w])`", text_of(FILTERS))
    for example in {each for each in examples if not each.startswith(("name", "sort", "KEY", "columns"))}:
        assert job_filter_of(example.partition("?")[2] if example.startswith("/") else example)
    assert len(examples) > 8
