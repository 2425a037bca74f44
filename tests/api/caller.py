"""How tests call the API: as somebody, with JSON in and out."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.test import Client

from lookout.access import ensure_person, issue_token
from lookout.models import Scope
from scheduler.actors import Role


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer of the API."""

    status: int
    body: Any
    headers: Any

    @property
    def error(self) -> dict[str, Any]:
        """What stands under "error"; the form of every refusal is checked on the way."""
        assert set(self.body) == {"error"}
        error: dict[str, Any] = self.body["error"]
        assert set(error) == {"code", "message", "problems"}
        for problem in error["problems"]:
            assert set(problem) - {"line"} == {"path", "message"}
        return error

    @property
    def paths(self) -> list[str]:
        """Where the problems are."""
        return [problem["path"] for problem in self.error["problems"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Somebody with a token, or without."""

    token: str = ""
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def get(
        self, path: str, query: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """GET below /api/."""
        return self.call("GET", path, query=query, headers=headers)

    def post(self, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        """POST an object as JSON, or text as it is."""
        return self.call("POST", path, body=body, headers=headers)

    def put(self, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        """PUT likewise."""
        return self.call("PUT", path, body=body, headers=headers)

    def delete(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        """DELETE below /api/."""
        return self.call("DELETE", path, headers=headers)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: dict[str, Any] | None = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Any method. An answer that is no JSON has its text as body."""
        response = self.raw(method, path, body=body, query=query, content_type=content_type, headers=headers)
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        text = response.content.decode()
        return Answer(
            status=response.status_code,
            body=json.loads(text) if is_json and text else text,
            headers=response.headers,
        )

    def raw(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: dict[str, Any] | None = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> HttpResponse:
        """The response as Django gives it."""
        data = body if isinstance(body, str | bytes) else "" if body is None else json.dumps(body)
        shown = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return self.client.generic(  # type: ignore[return-value]
            method,
            f"/api/{path}",
            data,
            content_type=content_type,
            query_params=query,
            headers={**shown, **(headers or {})},
        )


def caller(name: str, role: Role, *, groups: list[str] | None = None) -> Caller:
    """A person of that role, with a token."""
    return Caller(token=issue_token(ensure_person(name, role=role, groups=groups or [])))


def agent(executor: str) -> Caller:
    """The agent of an executor."""
    owner = ensure_person("admin", role=Role.ADMIN)
    return Caller(token=issue_token(owner, Scope.EXECUTOR, executor=executor))
