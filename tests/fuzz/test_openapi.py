"""Every operation the description names, called with what fits its schema and what does not: no answer is a fault."""

import json
from typing import Any, cast
from urllib.parse import quote

import pytest
import schemathesis
from django.db import transaction
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.core import NotSet
from schemathesis.generation import GenerationMode

from lookout.access import ensure_person, issue_token
from lookout.api.v1.openapi import openapi
from lookout.models import Scope
from scheduler.actors import Role
from scheduler.models import RunOutput
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run
from tests.fuzz.effort import tried

pytestmark = pytest.mark.django_db

_SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(openapi())))
OPERATIONS: dict[str, Any] = {
    found.label: found for found in (cast(Any, result).ok() for result in _SCHEMA.get_all_operations())
}


@pytest.fixture
def names() -> dict[str, str]:
    """What there is: half of the addresses name it, the other half anything."""
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    job = make_job("nightly")
    run = make_run(job, executor=make_executor())
    RunOutput.objects.create(run=run, head=b"x")
    return {"name": "nightly", "job_id": job.id, "run_id": str(run.id), "version": "1"}


@pytest.mark.parametrize("label", OPERATIONS)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "unfit"])
@tried(4)
@given(data=st.data())
def test_no_answer_is_a_fault(
    label: str, mode: GenerationMode, names: dict[str, str], data: st.DataObject
) -> None:
    case = data.draw(OPERATIONS[label].as_strategy(generation_mode=mode))
    answer = answered(case, names if data.draw(st.booleans()) else {})
    for close in answer._resource_closers:  # a stream that was opened is not read
        close()
    assert answer.status_code < 500 or answer.status_code == 503
    if answer.status_code >= 400:
        error = json.loads(answer.content)["error"]
        assert error["code"]
        assert error["message"]


def answered(case: Any, names: dict[str, str]) -> Any:
    """The answer to a generated call, by somebody who may make it; what it changed is taken back."""
    path = case.operation.path
    for name, value in (case.path_parameters or {}).items():
        path = path.replace("{" + name + "}", quoted(names.get(name, value)))
    before = transaction.savepoint_create()
    try:
        return Client(raise_request_exception=False).generic(
            case.method, path, body_of(case), content_type=case.media_type or "application/json",
            query_params=plain(case.query), headers={**plain(case.headers), "Authorization": f"Bearer {token(path)}"},
        )  # fmt: skip
    finally:
        transaction.savepoint_rollback(before)


def token(path: str) -> str:
    admin = ensure_person("ada", role=Role.ADMIN)
    return (
        issue_token(admin, Scope.EXECUTOR, executor="local") if "/executor/" in path else issue_token(admin)
    )


def body_of(case: Any) -> str | bytes:
    """The generated body as it travels; an agent does not wait, and mostly speaks for its own executor."""
    body = case.body
    if isinstance(body, NotSet):
        return ""
    if isinstance(body, dict) and "/executor/" in case.operation.path:
        body = {**body, **({"waitSeconds": 0} if "waitSeconds" in body else {})}
        body = {**body, "executor": "local"} if len(body) % 3 else body
    return body if isinstance(body, bytes) else json.dumps(body)


def quoted(value: Any) -> str:
    return quote(str(value).encode(errors="replace"), safe="")


def plain(given: Any) -> dict[str, Any]:
    """Parameters or headers as texts that can be sent."""
    return {sendable(name): sendable(value) for name, value in (given or {}).items()}


def sendable(value: Any) -> Any:
    if isinstance(value, list):
        return [sendable(item) for item in value]
    return str(value).encode(errors="replace").decode()
