"""The description of the API: complete, current, and kept as a file."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema import FormatChecker, validate  # type: ignore[import-untyped]

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


HISTORY = {
    "listJobs", "getJob", "listRuns", "getRun", "listDecisions", "groupJobs", "failureHeatMap", "groupFailures",
    "failureDays", "retryStatistics", "getRunOutput",
}  # fmt: skip
TWO = {
    "cancelJobs", "reprioritizeJobs", "preemptJobs", "submitJobs", "listEvents", "exportJobs", "exportRuns",
    "exportDecisions",
}  # fmt: skip
"""What is sent and what is answered, or an answer of each media type."""


def examples() -> list[tuple[str, Any, Any]]:
    """Operation, example and schema of everything that has an example."""
    return [
        (operation["operationId"], example["value"], content["schema"])
        for _, operation in operations()
        for told in (operation.get("requestBody", {}), *operation["responses"].values())
        for content in told.get("content", {}).values()
        for example in content.get("examples", {}).values()
    ]


def test_every_question_to_the_history_and_every_action_on_jobs_has_an_example() -> None:
    named = Counter(name for name, _, _ in examples())
    assert named == {**dict.fromkeys(HISTORY, 1), **dict.fromkeys(TWO, 2)}


def strict(schema: Any) -> Any:
    """The same as plain JSON schema, with nothing but what is named."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: strict(each) for name, each in schema.items() if name != "nullable"}
    if "properties" in plain:
        plain.setdefault("additionalProperties", False)
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") else plain


@pytest.mark.parametrize(
    ("name", "value", "schema"), examples(), ids=lambda each: each if isinstance(each, str) else ""
)
def test_an_example_is_as_its_schema_says(name: str, value: Any, schema: Any) -> None:
    components = strict(openapi()["components"])
    validate(value, {**strict(schema), "components": components}, format_checker=FormatChecker())
