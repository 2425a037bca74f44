"""Every refusal has one form, whatever went wrong."""

import json
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from lookout.api.json_reading import object_of_json
from policies.problems import DocumentInvalid
from scheduler.actors import Role
from tests.api.caller import Caller, caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> Caller:
    return caller("olga", Role.OPERATOR)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize(
    "path", ["", "v1", "v1/", "v1/nothing", "v2/jobs", "executor/v1/x", "v1/queues/a/b/c"]
)
def test_an_address_that_does_not_exist(method: str, path: str) -> None:
    refused = Caller().call(method, path)
    assert (refused.status, refused.error["code"]) == (404, "not_found")
    assert "openapi.json" in refused.error["message"]


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_a_method_that_does_not_exist(olga: Caller, method: str) -> None:
    refused = olga.call(method, "v1/queues")
    assert (refused.status, refused.error["code"]) == (405, "method_not_allowed")
    assert refused.headers["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    "path", ["queues", "retry-policies", "jobs", "runs", "executors", "retry-policies/a/versions", "none"]
)
def test_a_name_that_nothing_can_have(olga: Caller, path: str) -> None:
    refused = olga.get(f"v1/{path}/a%00b")
    assert (refused.status, refused.error["code"]) == (404, "not_found")
    assert olga.delete(f"v1/{path}/a%00b").status in (404, 405)


def test_nobody_is_told_what_exists(olga: Caller) -> None:
    for path in ("v1/queues", "v1/queues/none", "v1/jobs/none", "v1/events"):
        refused = Caller().get(path)
        assert (refused.status, refused.error["code"]) == (401, "unauthenticated")
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("", ""),
        ("{", ""),
        ("nonsense", ""),
        ('{"name": "a"} x', ""),
        ('{"name": NaN}', ""),
        ('{"name": Infinity}', ""),
        ('{"name": ' + "9" * 5_000 + "}", ""),
        ('{"name": "a", "name": "a"}', "name"),
        ('{"labels": {"a": "1", "a": "2"}, "name": "a"}', "labels.a"),
        ('{"permissions": [{}, {"verbs": [], "verbs": []}]}', "permissions[1].verbs"),
        ('{"name": "a\\u0000"}', "name"),
        ('{"name": "a", "labels": {"\\u0000": "x"}}', 'labels["?"]'),
        ('{"name": "\\ud800"}', "name"),
        ("[" * 100_000, ""),
        ('{"a":' * 100 + "1" + "}" * 100, ""),
        (b"\xff\xfe", ""),
    ],
)
def test_a_body_that_two_readers_could_read_differently(olga: Caller, body: str | bytes, path: str) -> None:
    refused = olga.post("v1/queues", body)
    assert refused.status == 400
    assert refused.error["problems"][0]["path"] == path


def test_a_body_that_is_too_large(olga: Caller) -> None:
    refused = olga.post("v1/queues", " " * (1024 * 1024 + 1))
    assert (refused.status, refused.error["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "media", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
)
def test_a_body_of_another_kind(olga: Caller, media: str) -> None:
    refused = olga.call("POST", "v1/jobs/cancel", body="{}", content_type=media)
    assert (refused.status, refused.error["code"]) == (415, "unsupported_media_type")


def test_many_problems_are_counted_and_the_first_is_told(olga: Caller) -> None:
    error = olga.post("v1/queues", {"name": "", "priorityFactor": 0}).error
    assert error["message"].startswith("There are 2 problems. The first: ")


def test_a_mistake_of_ours_is_logged_and_not_shown(olga: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("lookout.api.v1.queues.queue_rows", fail)
    refused = olga.get("v1/queues")
    assert (refused.status, refused.error["code"]) == (500, "internal")
    assert "secret" not in json.dumps(refused.body)


def test_a_database_that_does_not_answer(olga: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise OperationalError("connection refused")

    monkeypatch.setattr("lookout.api.v1.queues.queue_rows", fail)
    refused = olga.get("v1/queues")
    assert (refused.status, refused.error["code"]) == (503, "unavailable")
    assert refused.headers["Retry-After"] == "2"


def test_too_many_requests() -> None:
    admin = caller("ada", Role.ADMIN)
    statuses = [admin.post("v1/sign-in-links").status for _ in range(61)]
    assert statuses == [201] * 60 + [429]
    refused = admin.post("v1/sign-in-links")
    assert refused.error["code"] == "too_many_requests"
    assert int(refused.headers["Retry-After"]) > 0


def test_answers_are_not_kept_by_anybody(olga: Caller) -> None:
    assert olga.get("v1/queues").headers["Cache-Control"] == "no-store"
    assert olga.get("v1/none").headers["Cache-Control"] == "no-store"


def test_the_api_is_where_the_site_says(olga: Caller) -> None:
    headers = {"Authorization": f"Bearer {olga.token}"}
    assert Client().get("/api/v1/me", headers=headers).json()["name"] == "olga"


@pytest.mark.parametrize("text", ['{"a": 1, "b": [true, null, "x", 1.5]}', "7", '"x"', "[]"])
def test_json_is_read_as_it_is(text: str) -> None:
    assert object_of_json(text) == json.loads(text)


def test_a_long_list_of_keys_with_a_twin_at_its_end_is_refused_in_time() -> None:
    pairs = ",".join(f'"k{number}": 1' for number in range(100_000))
    with pytest.raises(DocumentInvalid):
        object_of_json("{" + pairs + ', "k99999": 2}')
