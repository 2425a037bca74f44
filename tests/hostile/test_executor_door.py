"""What an agent may be made to say: refused with its path, and neither the fleet nor a run changes."""

import base64
import json
import uuid
from typing import Any

import pytest

from scheduler.configured import configuration
from scheduler.leasing import run_round
from scheduler.models import Executor, Run, RunError, RunOutput
from scheduler.states import RunState
from tests.api.caller import Answer, Caller, agent
from tests.factories import make_executor, make_job, make_run
from tests.hostile.soon import soon

pytestmark = pytest.mark.django_db

NODE = {"name": "local-1", "cpuMillicores": 1000, "memoryBytes": 1 << 30}
HEARTBEAT = {"executor": "local", "pool": "default", "version": "1", "agentTime": "", "nodes": [NODE]}
RTL = "a\u202eb"

HEARTBEATS: list[tuple[dict[str, Any], str]] = [
    ({"pool": ""}, "pool"),
    ({"pool": "a\nb"}, "pool"),
    ({"pool": RTL}, "pool"),
    ({"pool": "p" * 64}, "pool"),
    ({"version": "\x1b[2J"}, "version"),
    ({"version": "v" * 10_000}, "version"),
    ({"agentTime": "2" * 10_000}, "agentTime"),
    ({"nodes": [{**NODE, "name": "a\nb"}]}, "nodes[0].name"),
    ({"nodes": [{**NODE, "name": RTL}]}, "nodes[0].name"),
    ({"nodes": [{**NODE, "labels": {"zone": "z" * 10_000}}]}, "nodes[0].labels.zone"),
    ({"nodes": [{**NODE, "labels": {"zone": "a\nb"}}]}, "nodes[0].labels.zone"),
    ({"nodes": [{**NODE, "labels": {"": "a"}}]}, 'nodes[0].labels[""]'),
    ({"nodes": [{**NODE, "labels": {f"k{n}": "" for n in range(1_001)}}]}, "nodes[0].labels"),
    ({"nodes": [{**NODE, "taints": [{"key": "a\nb", "effect": "NoExecute"}]}]}, "nodes[0].taints[0].key"),
    ({"nodes": [{**NODE, "taints": [{"key": "", "effect": "NoExecute"}]}]}, "nodes[0].taints[0].key"),
    ({"nodes": [{**NODE, "taints": [{"key": "a", "effect": "Never"}]}]}, "nodes[0].taints[0].effect"),
    ({"nodes": [{**NODE, "taints": [{"key": "a", "effect": "NoExecute"}] * 101}]}, "nodes[0].taints"),
    ({"nodes": [{**NODE, "resources": {"gpu": -1}}]}, "nodes[0].resources.gpu"),
    ({"nodes": [{**NODE, "resources": {"gpu": 2**63}}]}, "nodes[0].resources.gpu"),
    ({"nodes": [{**NODE, "resources": {"g\npu": 1}}]}, 'nodes[0].resources["g\npu"]'),
    ({"nodes": [{**NODE, "memoryBytes": 2**63}]}, "nodes[0].memoryBytes"),
    ({"nodes": [{**NODE, "memoryBytes": 1e400}]}, ""),
    ({"nodes": [{**NODE, "notes": ["n"] * 101}]}, "nodes[0].notes"),
    ({"categories": [{"name": "c" * 10_000, "disposition": "Delete"}]}, "categories[0].name"),
    ({"categories": [{"name": "c" * 64, "disposition": "Delete"}]}, "categories[0].name"),
    ({"categories": [{"name": "c", "disposition": "Delete"}] * 2}, "categories[1].name"),
    ({"trackedNodeLabels": ["a\nb"]}, "trackedNodeLabels[0]"),
    ({"honours": ["h" * 1_025]}, "honours[0]"),
    ({"executor": "l" * 64}, "executor"),
    ({"x" * 100_000: 1}, "x" * 63),
]
REPORTS: list[tuple[dict[str, Any], str]] = [
    ({"runId": "r" * 10_000}, "reports[0].runId"),
    ({"runId": 7}, "reports[0].runId"),
    ({"state": "leased"}, "reports[0].state"),
    ({"state": None}, "reports[0].state"),
    ({"category": "c" * 10_000}, "reports[0].category"),
    ({"subcategory": "c" * 64}, "reports[0].subcategory"),
    ({"reason": "OutOfLuck", "message": "x"}, "reports[0].reason"),
    ({"reason": "r" * 10_000}, "reports[0].reason"),
    ({"ageSeconds": -1}, "reports[0].ageSeconds"),
    ({"ageSeconds": "1"}, "reports[0].ageSeconds"),
    ({"ageSeconds": 1e300}, "reports[0].ageSeconds"),
    ({"exitCode": 2**31}, "reports[0].exitCode"),
    ({"exitCode": -(2**31) - 1}, "reports[0].exitCode"),
    ({"signal": 256}, "reports[0].signal"),
    ({"memoryPeakBytes": 2**63}, "reports[0].memoryPeakBytes"),
    ({"message": "m" * 300_000}, "reports[0].message"),
    ({"warnings": ["w"] * 101}, "reports[0].warnings"),
    ({"warnings": [7]}, "reports[0].warnings[0]"),
    ({"warnings": ["w" * 60_000] * 10}, "reports[0]"),
    ({"containers": [{"name": "c", "exitCode": 1}] * 101}, "reports[0].containers"),
    ({"output": {"head": "no base64"}}, "reports[0].output.head"),
    ({"output": {"tail": base64.b64encode(b"x" * 10_000_000).decode()}}, "reports[0].output.tail"),
    ({"output": {"droppedBytes": 2**63}}, "reports[0].output.droppedBytes"),
    ({"output": []}, "reports[0].output"),
]


@pytest.fixture
def local() -> Caller:
    return agent("local")


@pytest.fixture
def run() -> Run:
    return make_run(make_job(), executor=make_executor())


def tell(local: Caller, run: Run, **fields: Any) -> Answer:
    report = {"runId": str(run.id), "state": "failed", **fields}
    return local.post("executor/v1/reports", {"executor": "local", "reports": [report]})


@pytest.mark.parametrize(("fields", "path"), HEARTBEATS)
def test_a_heartbeat_nobody_should_believe(local: Caller, fields: dict[str, Any], path: str) -> None:
    with soon():
        refused = local.post("executor/v1/heartbeat", {**HEARTBEAT, **fields})
    assert (refused.status, refused.paths[:1]) == (400, [path])
    assert not Executor.objects.exists()


@pytest.mark.parametrize(("fields", "path"), REPORTS)
def test_a_report_nobody_should_believe(local: Caller, run: Run, fields: dict[str, Any], path: str) -> None:
    with soon():
        refused = tell(local, run, **fields)
    assert (refused.status, refused.paths) == (400, [path])
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    assert not RunError.objects.exists()


@pytest.mark.parametrize(
    "time", ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon"]
)
def test_an_agents_clock_decides_nothing(local: Caller, time: str) -> None:
    assert local.post("executor/v1/heartbeat", {**HEARTBEAT, "agentTime": time}).status == 200
    skewed = Executor.objects.get()
    assert skewed.heartbeat_at is not None
    assert abs(skewed.clock_skew_seconds) < 3e11


def test_names_as_long_as_their_columns_go_all_the_way_to_a_run(local: Caller) -> None:
    name = "\U00020000" * 253
    node = {**NODE, "name": name, "labels": {"kubernetes.io/hostname": name}}
    pool = "\U00020000" * 63
    assert local.post("executor/v1/heartbeat", {**HEARTBEAT, "pool": pool, "nodes": [node]}).status == 200
    make_job()
    assert run_round(pool=pool, config=configuration()).placed == 1
    assert (Run.objects.get().node, Run.objects.get().node_id) == (name, name)


def test_amounts_as_large_as_their_columns_add_up(local: Caller) -> None:
    most = 2**63 - 1
    large = {"cpuMillicores": most, "memoryBytes": most, "resources": {"gpu": most}}
    nodes = [{"name": f"n{n}", **large} for n in range(3)]
    assert local.post("executor/v1/heartbeat", {**HEARTBEAT, "nodes": nodes}).status == 200
    make_job(memory_bytes=most, cpu_request_millicores=most)
    make_job(memory_bytes=most, cpu_request_millicores=most)
    assert run_round(pool="default", config=configuration()).placed == 2


def test_the_largest_report_is_recorded(local: Caller, run: Run) -> None:
    kept = base64.b64encode(bytes(range(256)) * 256).decode()
    fields = {
        "category": "\U00020000" * 63, "subcategory": "\U00020000" * 63, "reason": "DeadlineExceeded",
        "message": "\x00\x1b\u202e" * 80_000, "exitCode": -(2**31), "signal": 255, "memoryPeakBytes": 2**63 - 1,
        "ageSeconds": 2**62, "output": {"head": kept, "tail": kept, "droppedBytes": 2**63 - 1},
        "containers": [{"name": "\ud800", "exitCode": 2**31 - 1, "reason": "r" * 253, "message": "\x00" * 1_000}] * 100,
    }  # fmt: skip
    assert tell(local, run, **fields).body["outcomes"][0]["outcome"] == "recorded"
    assert "\x00" not in RunError.objects.get().message
    assert len(bytes(RunOutput.objects.get().head)) == 65_536


@pytest.mark.parametrize("state", ["pending", "running", "succeeded", "failed", "leaseReturned", "cancelled"])
@pytest.mark.parametrize(
    "before", [RunState.SUCCEEDED, RunState.FAILED, RunState.LEASE_RETURNED, RunState.CANCELLED]
)
def test_nothing_follows_an_end(local: Caller, before: RunState, state: str) -> None:
    run = make_run(make_job(), executor=make_executor(), state=before)
    told = tell(local, run, state=state, category="other", exitCode=7)
    assert told.body["outcomes"][0]["outcome"] == "unchanged"
    again = Run.objects.get()
    assert (again.state, again.category, again.exit_code) == (run.state, run.category, run.exit_code)


def test_what_is_said_twice_in_a_batch_counts_once(local: Caller, run: Run) -> None:
    states = ["running", "failed", "succeeded", "pending", "failed"]
    reports = [{"runId": str(run.id), "state": state} for state in states]
    told = local.post("executor/v1/reports", {"executor": "local", "reports": reports})
    assert [each["outcome"] for each in told.body["outcomes"]] == [
        "unchanged",
        "recorded",
        *["unchanged"] * 3,
    ]
    run.refresh_from_db()
    assert run.state == RunState.FAILED


@pytest.mark.parametrize(
    "text", ["{run}", "URN:UUID:{run}", "{{{run}}}", " {run}", "{other}", "nonsense", ""]
)
def test_runs_of_others_and_of_nobody_are_refused_each_by_itself(local: Caller, run: Run, text: str) -> None:
    foreign = make_run(make_job(), executor=make_executor("other"))
    named = text.format(run=str(run.id).upper(), other=foreign.id)
    reports = [{"runId": named, "state": "failed"}, {"runId": str(run.id), "state": "failed"}]
    told = local.post("executor/v1/reports", {"executor": "local", "reports": reports}).body["outcomes"]
    assert [(each["runId"], each["outcome"]) for each in told] == [
        (named, "refused"),
        (str(run.id), "recorded"),
    ]
    assert told[0]["why"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"runs": ["r"] * 20_001}, "runs"),
        ({"runs": "r"}, "runs"),
        ({"runs": [7]}, "runs[0]"),
        ({"runs": [], "waitSeconds": 21}, "waitSeconds"),
        ({"runs": [], "waitSeconds": -1}, "waitSeconds"),
        ({"runs": [], "waitSeconds": True}, "waitSeconds"),
    ],
)
def test_a_request_for_work_that_makes_no_sense(local: Caller, body: dict[str, Any], path: str) -> None:
    refused = local.post("executor/v1/work", {"executor": "local", **body})
    assert (refused.status, refused.paths) == (400, [path])


def test_thousands_of_runs_nobody_knows_are_answered_in_time(local: Caller) -> None:
    runs = [str(uuid.uuid4()) for _ in range(20_000)]
    with soon(seconds=2):
        answer = local.post("executor/v1/work", {"executor": "local", "runs": runs})
    assert sorted(answer.body["forget"]) == sorted(runs)


@pytest.mark.parametrize("door", ["heartbeat", "work", "reports"])
@pytest.mark.parametrize(
    "body",
    [
        '{"executor": "local", "executor": "other"}',
        '{"executor": "local", "reports": [' + "[]," * 9_000_000 + "[]]}",
        '{"executor": "local", "nodes": [' + "{}," * 900_000 + "{}]}",
        '{"executor": ' + "[" * 1_000_000,
        '{"executor": "local", "runs": [], "waitSeconds": 1e999}',
        json.dumps({"executor": "local", "EXECUTOR": "other"}),
        "\x00",
        "",
        "null",
        "[]",
    ],
    ids=range(10),
)
def test_a_body_that_costs_more_than_it_says(local: Caller, door: str, body: str) -> None:
    with soon():
        refused = local.post(f"executor/v1/{door}", body)
    assert refused.status in (400, 413)
