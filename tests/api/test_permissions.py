"""Who may do what: every operation of the API, for everybody who may come by."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from lookout.api.v1.openapi import openapi
from scheduler.actors import Role
from scheduler.models import RunOutput
from tests.api.caller import Answer, Caller, agent, caller
from tests.factories import OOM_GROW, POD_SPEC, make_executor, make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

WHO: dict[str, Callable[[], Caller]] = {
    "anonymous": Caller,
    "reader": lambda: caller("bob", Role.READER),
    "submitter": lambda: caller("sam", Role.SUBMITTER),
    "queue owner": lambda: caller("alice", Role.READER),
    "group owner": lambda: caller("gina", Role.READER, groups=["data"]),
    "granted": lambda: caller("greg", Role.READER),
    "operator": lambda: caller("olga", Role.OPERATOR),
    "admin": lambda: caller("ada", Role.ADMIN),
    "agent": lambda: agent("local"),
    "agent of another": lambda: agent("other"),
}

READ = "401 200 200 200 200 200 200 200 403 403"
OPERATE = "401 403 403 403 403 403 200 200 403 403"
OPERATE_MAKING = OPERATE.replace("200", "201")
SUBMIT = "401 403 200 200 200 200 200 200 403 403"
CANCEL = "401 403 403 200 200 403 200 200 403 403"
AGENT = "401 403 403 403 403 403 403 403 200 403"
ALL = "200 200 200 200 200 200 200 200 200 200"
LINK = "401 201 201 201 201 201 201 201 403 403"

NODES = [{"name": "local-1", "cpuMillicores": 1, "memoryBytes": 1}]
JOBS = [{"podSpec": POD_SPEC}]

TABLE: list[tuple[str, object, str]] = [
    ("GET v1/openapi.json", None, ALL),
    ("GET v1/me", None, READ),
    ("POST v1/sign-in-links", None, LINK),
    ("GET v1/queues", None, READ),
    ("POST v1/queues", {"name": "new"}, OPERATE_MAKING),
    ("GET v1/queues/{queue}", None, READ),
    ("PUT v1/queues/{queue}", {}, OPERATE),
    ("DELETE v1/queues/{empty}", None, OPERATE),
    ("PUT v1/queues/{queue}/retry-policies", {"retryPolicies": []}, OPERATE),
    ("GET v1/retry-policies", None, READ),
    ("POST v1/retry-policies", {**OOM_GROW, "name": "new"}, OPERATE_MAKING),
    ("POST v1/retry-policies?apply=true", OOM_GROW, OPERATE),
    ("POST v1/retry-policies/check", OOM_GROW, READ),
    ("GET v1/retry-policies/{policy}", None, READ),
    ("PUT v1/retry-policies/{policy}", OOM_GROW, OPERATE),
    ("DELETE v1/retry-policies/{policy}", None, OPERATE),
    ("GET v1/retry-policies/{policy}/versions", None, READ),
    ("GET v1/retry-policies/{policy}/versions/1", None, READ),
    ("GET v1/jobs", None, READ),
    ("POST v1/jobs", {"queue": "nightly", "jobSetId": "s", "jobs": JOBS}, SUBMIT),
    ("GET v1/jobs/{job}", None, READ),
    ("POST v1/jobs/cancel", {"jobIds": ["{job}"]}, CANCEL),
    ("GET v1/runs?job={job}", None, READ),
    ("GET v1/runs/{run}", None, READ),
    ("GET v1/runs/{run}/output", None, READ),
    ("GET v1/decisions", None, READ),
    ("GET v1/events?queue=nightly&jobSet=set", None, READ),
    ("GET v1/executors", None, READ),
    ("GET v1/executors/local", None, READ),
    ("POST executor/v1/heartbeat", {"executor": "local", "pool": "default", "version": "", "agentTime": "", "nodes": NODES}, AGENT),
    ("POST executor/v1/work", {"executor": "local", "runs": []}, AGENT),
    ("POST executor/v1/reports", {"executor": "local", "reports": []}, AGENT),
]  # fmt: skip


@pytest.fixture
def names() -> dict[str, str]:
    """What the table speaks of: a queue with its people, a job with a run, a policy, a queue without jobs."""
    grant = {"subjects": [{"kind": "User", "name": "greg"}], "verbs": ["submit"]}
    make_queue("nightly", owners=["alice"], group_owners=["data"], permissions=[grant])
    make_queue("empty")
    make_policy()
    job = make_job("nightly")
    run = make_run(job, executor=make_executor())
    RunOutput.objects.create(run=run, head=b"hello")
    return {"queue": "nightly", "empty": "empty", "policy": "oom-grow", "job": job.id, "run": str(run.id)}


@pytest.mark.parametrize(("operation", "body", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_who_may_do_what(operation: str, body: object, expected: str, names: dict[str, str]) -> None:
    method, path = operation.format(**names).split(" ")
    answers = {who: _undone(come, method, path, _named(body, names)) for who, come in WHO.items()}
    allowed = dict(zip(WHO, map(int, expected.split()), strict=True))
    assert {who: answer.status for who, answer in answers.items()} == allowed
    for answer in answers.values():
        assert answer.status < 400 or answer.error["message"]


def _undone(come: Callable[[], Caller], method: str, path: str, body: object) -> Answer:
    """What somebody is answered; what it changed is taken back."""
    before = transaction.savepoint_create()
    try:
        return come().call(method, path, body=body)
    finally:
        transaction.savepoint_rollback(before)


def _named(body: object, names: dict[str, str]) -> Any:
    if isinstance(body, dict) and "jobIds" in body:
        return {"jobIds": [names["job"]]}
    return body


def test_the_table_has_every_operation() -> None:
    told = {operation.partition("?")[0] for operation, _, _ in TABLE}
    known = {
        f"{method.upper()} {path.removeprefix('/api/')}"
        for path, methods in openapi()["paths"].items()
        for method in methods
    }
    plain = {
        operation.replace("{queue}", "{name}").replace("{empty}", "{name}").replace("{policy}", "{name}")
        .replace("{job}", "{job_id}").replace("{run}", "{run_id}")
        .replace("executors/local", "executors/{name}").replace("versions/1", "versions/{version}")
        for operation in told
    }  # fmt: skip
    assert plain - {"GET v1/openapi.json"} == known
