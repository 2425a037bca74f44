"""Read conformance files: which cases there are, what each expects of Tack, and how a difference is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"
FOR_PEOPLE = frozenset({"id", "title", "origin", "note", "tack", "reference_deviates"})
FOR_PEOPLE_IN_EXPECT = frozenset({"reference_fragment"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One case with Tack's own expectation already put in the place of Armada's."""

    id: str
    title: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]
    because: str = ""
    not_applicable: str = ""

    def check(self, actual: Mapping[str, Any]) -> None:
        """Fail unless exactly what is expected came out. Skip where Tack has no such thing."""
        wanted = {key: value for key, value in self.expect.items() if key not in FOR_PEOPLE_IN_EXPECT}
        assert actual == wanted, f"{self.id}: {self.title}. {self.because} {_differences(actual, wanted)}"

    def refuse_unknown_keys(self, known: Iterable[str], expected: Iterable[str]) -> None:
        """A key that the runner does not read must never pass by being overlooked."""
        surplus = (set(self.given) - set(known)) | (set(self.expect) - set(expected) - FOR_PEOPLE_IN_EXPECT)
        if surplus:
            raise KeyError(f"{self.id}: the runner does not know {sorted(surplus)}.")


def cases(file: str, lists: str = "cases", *, expected_keys: tuple[str, ...] = ("expect",)) -> list[Any]:
    """Parameters for pytest: every case of one list of a file, skipping what does not apply to Tack.

    Where a file has no `expect`, `expected_keys` names the keys that hold what is expected.
    """
    document = json.loads((DATA / file).read_text(encoding="utf-8"))
    return [_parameter(row, expected_keys) for row in document[lists]]


def _parameter(row: Mapping[str, Any], expected_keys: tuple[str, ...]) -> Any:
    case = read_case(row, expected_keys)
    skip = [pytest.mark.skip(reason=case.not_applicable)] if case.not_applicable else []
    return pytest.param(case, id=case.id, marks=skip)


def read_case(row: Mapping[str, Any], expected_keys: tuple[str, ...] = ("expect",)) -> Case:
    """A case from its row in a file, by the rules of the data's README."""
    tack, known_by = row.get("tack"), _known_by(row)
    if isinstance(tack, str):
        if not tack.startswith("not applicable:"):
            raise ValueError(f"{known_by}: tack says {tack!r}, which no rule covers.")
        return Case(id=known_by, title=row.get("title", ""), given={}, expect={}, not_applicable=tack)
    own = dict(tack or {})
    because = str(own.pop("because", ""))
    expect = own.pop("expect", None)
    if expect is None:
        expect = _expected(row, expected_keys)
    given = {key: value for key, value in row.items() if key not in FOR_PEOPLE and key not in expected_keys}
    return Case(id=known_by, title=row.get("title", ""), given=given | own, expect=expect, because=because)


def _known_by(row: Mapping[str, Any]) -> str:
    """A case's id; rows of client_events.json are known by what they are about."""
    return str(row.get("id") or row.get("internal_error_kind") or row["event"])


def _expected(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return row["expect"] if keys == ("expect",) else {key: row[key] for key in keys if key in row}


def _differences(actual: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Key → what came and what was wanted, of the keys that differ."""
    keys = [key for key in {**wanted, **actual} if actual.get(key) != wanted.get(key)]
    return {key: {"came": actual.get(key), "wanted": wanted.get(key)} for key in keys}
