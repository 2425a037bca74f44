"""Values to JSON and back."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import pytest

from lookout.api.schema import schema_of_shape
from lookout.api.shapes import AtMost, Named, WhenKnown, decode, encode
from policies.problems import DocumentInvalid


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """A leaf."""

    is_green: bool
    size_bytes: Annotated[int, AtMost(10)] = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A tree."""

    name: Annotated[str, AtMost(5)]
    """What it is called."""
    leaves: tuple[Leaf, ...] = ()
    colours: Annotated[tuple[Colour, ...], AtMost(2)] = ()
    heights: dict[str, float] = dataclasses.field(default_factory=dict)
    planted_by: str | None = None
    odd_name: Annotated[int, Named("odd.name")] = 0
    bark: bytes = b""
    note: Annotated[str | None, WhenKnown()] = None


def test_what_is_sent_becomes_a_value_and_goes_back_the_same() -> None:
    sent = {
        "name": "oak",
        "leaves": [{"green": True, "sizeBytes": 3}],
        "colours": ["blue"],
        "heights": {"a": 1.5},
        "plantedBy": None,
        "odd.name": 7,
        "bark": "AAE=",
    }
    tree = decode(Tree, sent)
    assert tree == Tree(
        name="oak",
        leaves=(Leaf(is_green=True, size_bytes=3),),
        colours=(Colour.BLUE,),
        heights={"a": 1.5},
        odd_name=7,
        bark=b"\x00\x01",
    )
    assert encode(tree) == sent


def test_letter_case_of_names_is_forgiven() -> None:
    assert decode(Tree, {"NAME": "oak", "PLANTEDBY": "ann"}).planted_by == "ann"


@pytest.mark.parametrize(
    ("sent", "problems"),
    [
        (7, {"": "Takes an object, not a number."}),
        ({}, {"name": "Is required: text."}),
        ({"name": None}, {"name": "Takes text, not null."}),
        ({"name": "sequoia"}, {"name": "Takes at most 5 characters, not 7. Shorten it."}),
        ({"name": "oak", "Name": "elm"}, {"Name": "Is given twice, in different letter case. Keep one."}),
        ({"name": "oak", "leavs": []}, {"leavs": "There is no field leavs here. Did you mean leaves?"}),
        ({"name": "oak", "leaves": {}}, {"leaves": "Takes a list, not an object."}),
        ({"name": "oak", "leaves": [{}, 1]}, {"leaves[0].green": "Is required: true or false.", "leaves[1]": "Takes an object, not a number."}),
        ({"name": "oak", "leaves": [{"green": 1}]}, {"leaves[0].green": "Takes true or false, not a number."}),
        ({"name": "oak", "leaves": [{"green": True, "sizeBytes": 11}]}, {"leaves[0].sizeBytes": "Takes a whole number from 0 to 10."}),
        ({"name": "oak", "leaves": [{"green": True, "sizeBytes": -1}]}, {"leaves[0].sizeBytes": "Takes a whole number from 0 to 10."}),
        ({"name": "oak", "leaves": [{"green": True, "sizeBytes": True}]}, {"leaves[0].sizeBytes": "Takes a whole number, not true or false."}),
        ({"name": "oak", "colours": ["red", "red", "red"]}, {"colours": "Takes at most 2 items, not 3. Send it in several parts."}),
        ({"name": "oak", "colours": ["green"]}, {"colours[0]": "Takes one of red, blue."}),
        ({"name": "oak", "heights": {"a": "x"}}, {"heights.a": "Takes a number, not text."}),
        ({"name": "oak", "bark": "?"}, {"bark": "Takes base64. Encode it so."}),
        ({"name": 1, "leaves": 1, "x": 1}, {"name": "Takes text, not a number.", "leaves": "Takes a list, not a number.", "x": "There is no field x here."}),
    ],
)  # fmt: skip
def test_every_problem_is_told_with_its_path(sent: object, problems: dict[str, str]) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        decode(Tree, sent)
    assert {problem.path: problem.message for problem in refused.value.problems} == problems


def test_bounds_may_come_from_outside() -> None:
    with pytest.raises(DocumentInvalid, match="from 0 to 5"):
        decode(Leaf, {"green": True, "sizeBytes": 6}, {"size_bytes": 5})


def test_times_are_utc() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=timezone(timedelta(hours=2)))
    assert encode(at) == "2026-01-02T01:04:05.000600Z"
    assert encode(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00Z"
    assert encode(UUID(int=1)) == "00000000-0000-0000-0000-000000000001"


def test_a_description_says_what_is_accepted() -> None:
    found: list[type[Any]] = []
    schema = schema_of_shape(Tree, found, is_sent=True)
    assert schema["required"] == ["name"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["name"] == {
        "type": "string",
        "maxLength": 5,
        "description": "What it is called.",
    }
    assert schema["properties"]["leaves"]["items"] == {"$ref": "#/components/schemas/Leaf"}
    assert schema["properties"]["plantedBy"] == {"type": "string", "nullable": True}
    assert "odd.name" in schema["properties"]
    assert found == [Leaf, Colour]
