"""The description of the API: complete, current, and kept as a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from lookout.api.v1.openapi import openapi
from tests.api.caller import Caller

FILE = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/api/") -> list[str]:
    found = []
    for each in patterns:
        if isinstance(each, URLResolver):
            found += addresses(each.url_patterns, before + str(each.pattern))
        else:
            found.append(before + str(each.pattern))
    return found


def test_the_file_is_what_the_server_says() -> None:
    written = json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"
    assert FILE.read_text() == written, "Write it again: ./tack manage openapi > docs/reference/openapi.json"


@pytest.mark.django_db
def test_the_server_hands_it_out_to_everybody() -> None:
    answer = Caller().get("v1/openapi.json")
    assert (answer.status, answer.body) == (200, json.loads(json.dumps(openapi())))


def test_nothing_is_left_undescribed(capsys: pytest.CaptureFixture[str]) -> None:
    openapi.cache_clear()
    openapi()
    assert capsys.readouterr().err == ""


def test_every_address_is_described() -> None:
    known = set(openapi()["paths"]) | {"/api/v1/openapi.json", "/api/"}
    plain = [
        address.replace("<str:", "{").replace("<int:", "{").replace(">", "}")
        for address in addresses(get_resolver("lookout.api.urls").url_patterns)
    ]
    assert set(plain) == known


@pytest.mark.parametrize(
    ("name", "operation"), operations(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_operation_says_what_it_takes_and_answers(name: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["operationId"]
    method, path = name.split(" ")
    success = [code for code in operation["responses"] if code.startswith("2")]
    assert success
    for code in success:
        assert all("schema" in content for content in operation["responses"][code]["content"].values())
    assert {"401", "403"} <= set(operation["responses"])
    for code in set(operation["responses"]) - set(success):
        schema = operation["responses"][code]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Refusal"}
    bodyless = ("/api/v1/sign-in-links",)
    if method in ("POST", "PUT") and path not in bodyless:
        assert "schema" in operation["requestBody"]["content"]["application/json"]
    assert operation["security"]


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(set(names)) == len(names)


def test_every_schema_that_is_referred_to_is_there() -> None:
    text = json.dumps(openapi())
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named == set(openapi()["components"]["schemas"])
