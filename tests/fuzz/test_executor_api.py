"""An agent that says anything: it is answered or refused, and what follows from its word still works."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.actors import Role
from scheduler.configured import configuration
from scheduler.leasing import run_round
from scheduler.models import Job, Pool, Run
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.api.caller import Answer, Caller, agent, caller
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run
from tests.fuzz.effort import tried, undone
from tests.fuzz.hostile_values import mutated

pytestmark = pytest.mark.django_db

NODE = {
    "name": "local-1", "labels": {"kubernetes.io/hostname": "local-1"},
    "taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}], "cpuMillicores": 2000,
    "memoryBytes": 1 << 30, "resources": {"gpu": 1}, "schedulable": True, "memoryEnforcedBy": "cgroup2", "notes": ["x"],
}  # fmt: skip
HEARTBEAT = {
    "executor": "local", "pool": "default", "version": "1", "agentTime": "2026-01-01T00:00:00Z", "nodes": [NODE],
    "categories": [{"name": "oom", "disposition": "Delete"}], "trackedNodeLabels": ["zone"], "honours": ["spec.containers"],
}  # fmt: skip
REPORT = {
    "runId": "", "state": "failed", "ageSeconds": 0.5, "node": "local-1", "podName": "p", "exitCode": 137, "signal": 9,
    "category": "oom", "subcategory": "limit", "hint": "h", "message": "m", "reason": "OOM", "attempted": True,
    "containers": [{"name": "main", "exitCode": 137, "reason": "OOMKilled", "message": "x", "init": False}],
    "memoryPeakBytes": 1, "killedBy": "memory", "enforcedBy": "cgroup2", "warnings": ["w"],
    "output": {"head": base64.b64encode(b"x").decode(), "tail": "", "droppedBytes": 0},
}  # fmt: skip
STATES = ["pending", "running", "succeeded", "failed", "leaseReturned", "cancelled"]


def expected(answer: Answer) -> None:
    """Recorded, refused with problems, or somebody else's: the name of the executor may have been changed, too."""
    assert answer.status in (200, 400, 403), answer.body
    assert answer.status != 400 or answer.error["problems"]


@pytest.fixture
def local() -> Caller:
    make_executor()
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    return agent("local")


@tried(30)
@given(data=st.data())
def test_heartbeats(local: Caller, data: st.DataObject) -> None:
    with undone():
        expected(local.post("executor/v1/heartbeat", data.draw(mutated(HEARTBEAT))))
        make_job("nightly")
        for pool in Pool.objects.values_list("name", flat=True):
            run_round(pool=pool, config=configuration())


@tried(15)
@given(data=st.data())
def test_requests_for_work(local: Caller, data: st.DataObject) -> None:
    make_run(make_job("nightly"), state=RunState.LEASED)
    expected(
        local.post(
            "executor/v1/work", data.draw(mutated({"executor": "local", "runs": ["x"], "waitSeconds": 0}))
        )
    )


@tried(15)
@given(data=st.data())
def test_reports_in_any_order(local: Caller, data: st.DataObject) -> None:
    with undone():
        runs = [make_run(make_job("nightly"), state=RunState.LEASED) for _ in range(2)]
        for _ in range(2):
            body = {
                "executor": "local",
                "reports": data.draw(st.lists(reports(runs), min_size=1, max_size=4)),
            }
            expected(local.post("executor/v1/reports", data.draw(st.just(body) | mutated(body))))
        settle_runs(config=configuration())
        assert not Run.objects.filter(settle_tries__gt=0).exists()
        assert not Run.objects.filter(ended_at__isnull=False, settled_at=None).exists()
        everything_is_shown()


def reports(runs: list[Run]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda run, state: {**REPORT, "runId": str(run.id), "state": state},
        st.sampled_from(runs),
        st.sampled_from(STATES),
    )


def everything_is_shown() -> None:
    """Whatever was recorded can be read."""
    reader = caller("rita", Role.READER)
    for path in ("jobs", "decisions", "executors", "events?queue=nightly&jobSet=set"):
        assert reader.get(f"v1/{path}").status == 200
    for job_id in Job.objects.values_list("id", flat=True)[:2]:
        assert reader.get(f"v1/jobs/{job_id}").status == 200
