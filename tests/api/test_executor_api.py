"""What agents ask and tell, over HTTP."""

import base64
import threading
import time
import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from lookout.api import closing
from lookout.api.executor.bell import WORK_BELL
from scheduler.models import Executor, Run, RunError, RunOutput
from scheduler.models.clock import database_now
from scheduler.states import RunState
from tests.api.caller import Caller, agent
from tests.factories import make_executor, make_job, make_run

pytestmark = pytest.mark.django_db


NOTHING_TO_DO: dict[str, Any] = {"leases": [], "stop": [], "forget": [], "missed": [], "askAgainSeconds": 0}


@pytest.fixture
def local() -> Caller:
    return agent("local")


def heartbeat(**fields: Any) -> dict[str, Any]:
    return {
        "executor": "local",
        "pool": "default",
        "version": "1",
        "agentTime": "2026-01-01T00:00:00Z",
        "nodes": [
            {
                "name": "local-1",
                "labels": {"kubernetes.io/hostname": "local-1"},
                "cpuMillicores": 2000,
                "memoryBytes": 1 << 30,
                "resources": {"nvidia.com/gpu": 1},
                "schedulable": True,
                "memoryEnforcedBy": "cgroup2",
                "notes": ["The image is ignored."],
            }
        ],
        "categories": [{"name": "oom", "disposition": "Delete"}],
        "trackedNodeLabels": ["kubernetes.io/hostname"],
        "honours": ["spec.containers[].command"],
        **fields,
    }


def report(run: Run, **fields: Any) -> dict[str, Any]:
    return {"runId": str(run.id), "state": "failed", "ageSeconds": 0.5, **fields}


def send(local: Caller, *reports: dict[str, Any]) -> list[dict[str, Any]]:
    answer = local.post("executor/v1/reports", {"executor": "local", "reports": list(reports)})
    assert answer.status == 200, answer.body
    outcomes: list[dict[str, Any]] = answer.body["outcomes"]
    return outcomes


def test_a_heartbeat_is_recorded_whole(local: Caller) -> None:
    answer = local.post("executor/v1/heartbeat", heartbeat())
    assert (answer.status, answer.body) == (200, {})
    executor = Executor.objects.get()
    assert (executor.name, executor.pool_id, executor.version) == ("local", "default", "1")
    assert executor.categories == [{"name": "oom", "disposition": "Delete"}]
    assert executor.honours == ["spec.containers[].command"]
    node = executor.nodes.get()
    assert (node.name, node.cpu_millicores, node.memory_bytes) == ("local-1", 2000, 1 << 30)
    assert (node.resources, node.memory_enforced_by) == ({"nvidia.com/gpu": 1}, "cgroup2")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"nodes": [{"name": "a", "cpuMillicores": -1, "memoryBytes": 1}]}, "nodes[0].cpuMillicores"),
        ({"nodes": [{"name": "a", "cpuMillicores": 1.5, "memoryBytes": 1}]}, "nodes[0].cpuMillicores"),
        ({"nodes": [{"name": "a", "cpuMillicores": 1, "memoryBytes": 2**63}]}, "nodes[0].memoryBytes"),
        ({"nodes": [{"name": "a", "cpuMillicores": True, "memoryBytes": 1}]}, "nodes[0].cpuMillicores"),
        ({"nodes": [{"name": "a", "cpuMillicores": 1}]}, "nodes[0].memoryBytes"),
        ({"nodes": [{"name": "", "cpuMillicores": 1, "memoryBytes": 1}]}, "nodes[0].name"),
        ({"nodes": [{"name": "n" * 254, "cpuMillicores": 1, "memoryBytes": 1}]}, "nodes[0].name"),
        ({"nodes": {}}, "nodes"),
        ({"nodes": [{"name": "a", "cpuMillicores": 1, "memoryBytes": 1, "cpus": 1}]}, "nodes[0].cpus"),
        (
            {"nodes": [{"name": "a", "cpuMillicores": 1, "memoryBytes": 1, "labels": {"a": 1}}]},
            "nodes[0].labels.a",
        ),
        ({"categories": [{"name": "oom", "disposition": "Keep"}]}, "categories[0].disposition"),
        ({"pool": 7}, "pool"),
        ({"unknown": 7}, "unknown"),
        ({"version": "\x00"}, "version"),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(local: Caller, fields: dict[str, Any], path: str) -> None:
    refused = local.post("executor/v1/heartbeat", heartbeat(**fields))
    assert (refused.status, refused.paths) == (400, [path])
    assert Executor.objects.count() == 0


def test_two_nodes_of_one_name_are_refused(local: Caller) -> None:
    node = {"name": "a", "cpuMillicores": 1, "memoryBytes": 1}
    refused = local.post("executor/v1/heartbeat", heartbeat(nodes=[node, node]))
    assert (refused.status, refused.paths) == (400, ["nodes[1].name"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("heartbeat", heartbeat(executor="other")),
        ("work", {"executor": "other", "runs": []}),
        ("reports", {"executor": "other", "reports": []}),
    ],
)
def test_an_agent_speaks_for_its_own_executor_only(local: Caller, path: str, body: dict[str, Any]) -> None:
    refused = local.post(f"executor/v1/{path}", body)
    assert (refused.status, refused.error["code"]) == (403, "wrong_scope")
    assert Caller().post(f"executor/v1/{path}", body).status == 401
    assert Caller(token="nonsense").post(f"executor/v1/{path}", body).status == 401


def test_leases_are_handed_out_until_the_agent_knows_them(local: Caller) -> None:
    run = make_run(make_job(job_set="a/b"), executor=make_executor(), state=RunState.LEASED)
    asked = {"executor": "local", "runs": [], "waitSeconds": 0}
    first = local.post("executor/v1/work", asked)
    assert first.status == 200
    (lease,) = first.body["leases"]
    assert lease["runId"] == str(run.id)
    assert lease["podName"] == f"armada-{run.job_id}-0"
    assert (lease["jobSetId"], lease["number"], lease["node"]) == ("a/b", 1, "local-1")
    assert lease["memoryBytes"] == 64 << 20
    assert lease["podSpec"]["containers"][0]["name"] == "main"
    assert local.post("executor/v1/work", asked).body == first.body
    assert local.post("executor/v1/work", {**asked, "runs": [str(run.id)]}).body["leases"] == []


def test_runs_that_ended_or_never_were_are_to_be_forgotten(local: Caller) -> None:
    run = make_run(executor=make_executor(), state=RunState.SUCCEEDED, settled_at=None)
    unknown = str(uuid.uuid4())
    answer = local.post("executor/v1/work", {"executor": "local", "runs": [str(run.id), unknown, "nonsense"]})
    assert set(answer.body["forget"]) == {str(run.id), unknown, "nonsense"}


def test_the_wait_is_at_most_twenty_seconds(local: Caller) -> None:
    refused = local.post("executor/v1/work", {"executor": "local", "runs": [], "waitSeconds": 21})
    assert (refused.status, refused.paths) == (400, ["waitSeconds"])


def listening() -> None:
    """Bells are heard from here on."""
    WORK_BELL.ticket("local")
    assert WORK_BELL.hears(within_seconds=10)


class Waiting:
    """An agent that waits for work in a thread of its own."""

    def __init__(self, local: Caller, *, seconds: float, **more: list[str]) -> None:
        self.body: Any = None
        self.seconds = 0.0
        asked = {"executor": "local", "runs": [], "waitSeconds": seconds, **more}
        self._thread = threading.Thread(target=self._ask, args=(local, asked))
        self._thread.start()

    def _ask(self, local: Caller, asked: dict[str, Any]) -> None:
        begin = time.monotonic()
        try:
            self.body = local.post("executor/v1/work", asked).body
        finally:
            self.seconds = time.monotonic() - begin
            connection.close()

    def answer(self) -> Any:
        """What it was told in the end."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.body


@pytest.mark.django_db(transaction=True)
def test_a_bell_ends_the_wait_at_once(local: Caller) -> None:
    executor = make_executor()
    listening()  # before the clock runs
    waiting = Waiting(local, seconds=20)
    with transaction.atomic():
        run = make_run(make_job(), executor=executor, state=RunState.LEASED)
        Executor.objects.wake(["local"])
    assert [lease["runId"] for lease in waiting.answer()["leases"]] == [str(run.id)]
    assert waiting.seconds < 3


@pytest.mark.django_db(transaction=True)
def test_a_stop_that_is_known_does_not_end_the_wait(local: Caller) -> None:
    job = make_job(cancel_requested_at=database_now(), cancel_user="bob")
    run = str(make_run(job, executor=make_executor()).id)
    waiting = Waiting(local, seconds=0.5, runs=[run], stopping=[run])
    assert waiting.answer()["stop"] == []
    assert waiting.seconds >= 0.5
    unheard_of = Waiting(local, seconds=20, runs=[run])
    assert [stop["runId"] for stop in unheard_of.answer()["stop"]] == [run]


@pytest.mark.django_db(transaction=True)
def test_work_whose_bell_was_lost_is_found_within_a_second_or_two(local: Caller) -> None:
    executor = make_executor()
    waiting = Waiting(local, seconds=20)
    listening()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
        )
    run = make_run(make_job(), executor=executor, state=RunState.LEASED)  # and nobody rings
    assert [lease["runId"] for lease in waiting.answer()["leases"]] == [str(run.id)]
    assert waiting.seconds < 4


@pytest.mark.django_db(transaction=True)
def test_a_wait_without_news_ends_empty(local: Caller) -> None:
    make_executor()
    waiting = Waiting(local, seconds=0.5)
    assert waiting.answer() == NOTHING_TO_DO
    assert waiting.seconds >= 0.5


@pytest.mark.django_db(transaction=True)
def test_a_wait_holds_no_database_connection(local: Caller) -> None:
    make_executor()
    listening()
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    waiting = Waiting(local, seconds=2)
    seen = []
    for _ in range(8):
        time.sleep(0.1)  # a sample of the wait; there is no event for "nothing happens"
        with connection.cursor() as cursor:
            cursor.execute(busy)
            seen.append(cursor.fetchone()[0])
    waiting.answer()
    assert min(seen) == 1  # the listener of the bells


@pytest.mark.django_db(transaction=True)
def test_the_end_of_the_process_ends_a_wait(local: Caller) -> None:
    make_executor()
    waiting = Waiting(local, seconds=20)
    closing.close_now()
    try:
        assert waiting.answer() == NOTHING_TO_DO
        assert waiting.seconds < 5
    finally:
        closing.close_now(closing=False)


def test_a_failure_is_recorded_with_everything_reported(local: Caller) -> None:
    run = make_run(executor=make_executor())
    outcomes = send(
        local,
        report(
            run,
            node="local-1",
            podName="armada-x-0",
            exitCode=137,
            signal=9,
            category="oom",
            subcategory="",
            hint="Ask for more.",
            message="Killed. Ask for more.",
            reason="OOM",
            containers=[
                {"name": "main", "exitCode": 137, "reason": "OOMKilled", "message": "", "init": False}
            ],
            memoryPeakBytes=64 << 20,
            killedBy="memory",
            enforcedBy="cgroup2",
            warnings=["one"],
            output={"head": base64.b64encode(b"head\x00").decode(), "tail": "", "droppedBytes": 3},
        ),
    )
    assert outcomes == [{"runId": str(run.id), "outcome": "recorded", "why": ""}]
    run.refresh_from_db()
    assert (run.state, run.exit_code, run.category, run.killed_by) == ("failed", 137, "oom", "memory")
    assert RunError.objects.get().containers[0]["reason"] == "OOMKilled"
    output = RunOutput.objects.get()
    assert (bytes(output.head), output.dropped_bytes) == (b"head\x00", 3)


def test_the_same_report_again_changes_nothing_and_an_unknown_run_is_refused(local: Caller) -> None:
    run = make_run(executor=make_executor())
    foreign = make_run(make_job(), executor=make_executor("other"))
    unknown = str(uuid.uuid4())
    first = send(local, report(run), {"runId": unknown, "state": "running"}, report(foreign))
    assert [each["outcome"] for each in first] == ["recorded", "refused", "refused"]
    assert "'other'" in first[2]["why"]
    assert [each["outcome"] for each in send(local, report(run), report(run))] == ["unchanged", "unchanged"]


def test_text_that_cannot_be_stored_is_mended_not_refused(local: Caller) -> None:
    run = make_run(executor=make_executor())
    send(local, report(run, message="a\x00b \ud800 c"))
    assert RunError.objects.get().message == "a\ufffdb \ufffd c"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"state": "leased"}, "reports[0].state"),
        ({"ageSeconds": -1}, "reports[0].ageSeconds"),
        ({"exitCode": 2**31}, "reports[0].exitCode"),
        ({"exitCode": "137"}, "reports[0].exitCode"),
        ({"category": "c" * 64}, "reports[0].category"),
        ({"output": {"head": "???"}}, "reports[0].output.head"),
        ({"output": {"head": base64.b64encode(b"x" * 65_537).decode()}}, "reports[0].output.head"),
        ({"killedBy": "magic"}, "reports[0].killedBy"),
        ({"exitcodes": 1}, "reports[0].exitcodes"),
        ({"containers": [{"name": "main"}]}, "reports[0].containers[0].exitCode"),
    ],
)
def test_a_report_that_makes_no_sense_is_refused(local: Caller, fields: dict[str, Any], path: str) -> None:
    run = make_run(executor=make_executor())
    refused = local.post("executor/v1/reports", {"executor": "local", "reports": [report(run, **fields)]})
    assert (refused.status, refused.paths) == (400, [path])
    run.refresh_from_db()
    assert run.ended_at is None


def test_reporting_takes_the_same_number_of_queries_for_any_number_of_runs(local: Caller) -> None:
    executor = make_executor()
    first = make_run(make_job(), executor=executor)
    with CaptureQueriesContext(connection) as few:
        send(local, report(first))
    runs = [make_run(make_job(), executor=executor) for _ in range(50)]
    with CaptureQueriesContext(connection) as many:
        send(local, *(report(run) for run in runs))
    assert len(many) == len(few)
