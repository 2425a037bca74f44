"""What jobs, people and agents may write is shown everywhere as what it is: text."""

from typing import Any

import pytest
from django.test import Client

from lookout.access import ensure_person
from scheduler.actors import Role
from scheduler.client_events import lease_returned
from scheduler.models import Event, Executor, Job, RunError, RunOutput
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.states import EventKind, JobState, RunState
from tests.api.caller import caller
from tests.api.deciding import decide
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run

pytestmark = pytest.mark.django_db

WORDS = "</pre><script>alert(1)</script>'\"&{{7*7}}{%x%}\x1b[2J\x07\u202e\u2028\r\n\t\ufeff\U0010ffff"
LINE = "</pre><script>alert(1)</script>'\"&{{7*7}}\u200f/../\U00020000"
"""What a name may hold."""


@pytest.fixture
def job() -> Job:
    """A failed and a running run of a job, all of whose words are hostile."""
    make_policy(note=WORDS)
    make_queue("nightly", policies=("oom-grow",), owners=[LINE], group_owners=[LINE], labels={LINE: LINE})
    executor = make_executor(
        LINE[:63], pool=LINE[:63], version=LINE, categories=[{"name": LINE[:63], "disposition": "Delete"}],
        honours=[LINE], tracked_node_labels=[LINE],
    )  # fmt: skip
    executor.nodes.update(
        labels={LINE: LINE}, resources={LINE: 2**63 - 1}, notes=[WORDS], memory_bytes=2**63 - 1
    )
    job = make_job(
        "nightly", job_set=LINE, owner=LINE, annotations={LINE: WORDS}, labels={LINE: LINE}, cancel_reason=WORDS,
        cancel_user=LINE, resources={LINE: 2**63 - 1}, node_selector={LINE: LINE}, memory_bytes=2**63 - 1,
        cpu_request_millicores=2**63 - 1, pod_spec={"containers": [{"name": "main", "args": [WORDS], LINE: WORDS}]},
    )  # fmt: skip
    run = make_run(
        job,
        executor=executor,
        state=RunState.FAILED,
        category=LINE[:63],
        subcategory=LINE[:63],
        message=WORDS,
    )
    containers = [{"name": LINE, "exitCode": -1, "reason": LINE, "message": WORDS, "init": False}]
    RunError.objects.filter(run=run).update(containers=containers, warnings=[WORDS])
    RunOutput.objects.create(
        run=run,
        head=WORDS.encode() + b"\xff\x00",
        tail=b"\xed\xa0\x80" + WORDS.encode(),
        dropped_bytes=2**63 - 1,
    )
    decide(run, reason=WORDS)
    returned = make_run(job, executor=executor, state=RunState.LEASE_RETURNED)
    payload = lease_returned(returned.place(), reason=WORDS, attempted=True)
    Event.objects.append(
        [NewEvent(job_set_id=job.job_set_id, job_id=job.id, run_id=returned.id, kind=EventKind.LEASE_RETURNED, created=database_now(), payload=payload)]
    )  # fmt: skip
    make_job("nightly", state=JobState.REJECTED, rejected_because=WORDS, owner=LINE)
    return make_run(job, executor=executor).job


def test_on_every_page(job: Job) -> None:
    client = Client()
    client.force_login(ensure_person("olga", role=Role.OPERATOR))
    addresses = [
        "/jobs", f"/jobs/{job.id}", f"/jobs/{job.id}?output=1&lines=all", f"/jobs/{job.id}/cancel", "/queues", "/queues/nightly",
        "/queues/nightly/edit", "/policies", "/policies/oom-grow", "/policies/oom-grow/edit", "/fleet",
    ]  # fmt: skip
    for address in addresses:
        page = client.get(address)
        assert page.status_code == 200, address
        text = page.content.decode()
        assert "<script>alert" not in text, address
        assert "{{7*7}}" in text or "{{" not in text, address
        assert not set(text) & set("\x1b\x07\x00"), address


def test_as_files(job: Job) -> None:
    client = Client()
    client.force_login(ensure_person("olga", role=Role.OPERATOR))
    run = job.runs.get(number=1)
    for address in (f"/jobs/{job.id}/spec", f"/runs/{run.id}/output", f"/api/v1/runs/{run.id}/output"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "html" not in answer.headers["Content-Type"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_over_rest(job: Job) -> None:
    rita = caller("rita", Role.READER)
    paths: list[tuple[str, dict[str, Any]]] = [
        ("jobs", {"jobSet": LINE}), (f"jobs/{job.id}", {}), ("runs", {"job": job.id}), ("decisions", {}),
        ("events", {"queue": "nightly", "jobSet": LINE}), ("executors", {}), ("queues/nightly", {}), ("retry-policies/oom-grow", {}),
    ]  # fmt: skip
    for path, query in paths:
        answer = rita.get(f"v1/{path}", query)
        assert answer.status == 200, path
        assert answer.headers["Content-Type"] == "application/json", path
    told = rita.get(f"v1/jobs/{job.id}").body
    assert told["annotations"] == {LINE: WORDS}
    assert told["runs"][0]["error"]["message"] == WORDS
    assert rita.get("v1/executors").body["executors"][0]["name"] == Executor.objects.get().name
