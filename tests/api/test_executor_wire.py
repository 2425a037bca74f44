"""The agent and the scheduler mean the same by what travels between them."""

import json

from lookout.api.executor.endpoints import Outcomes
from lookout.api.shapes import decode, encode
from policies.failures import ContainerEnd, Disposition
from scheduler.agent.wire import (
    heartbeat_json,
    outcomes_from_json,
    report_json,
    work_from_json,
    work_request_json,
)
from scheduler.executors.protocol import (
    CategoryDescription,
    EnforcedBy,
    Heartbeat,
    KilledBy,
    Lease,
    NodeDescription,
    Outcome,
    Output,
    Report,
    ReportOutcome,
    ReportState,
    Stop,
    TaintDescription,
    TaintEffect,
    Work,
    WorkRequest,
)


def test_what_an_agent_writes_is_what_is_read_here() -> None:
    told = Heartbeat(
        executor="local",
        pool="default",
        version="1",
        agent_time="2026-01-01T00:00:00Z",
        nodes=(
            NodeDescription(
                name="local-1",
                labels={"a": "b"},
                cpu_millicores=1,
                memory_bytes=2,
                resources={"nvidia.com/gpu": 3},
                taints=(TaintDescription(key="gpu", value="only", effect=TaintEffect.NO_SCHEDULE),),
                schedulable=False,
                memory_enforced_by=EnforcedBy.CGROUP2,
                notes=("note",),
            ),
        ),
        categories=(CategoryDescription(name="oom", disposition=Disposition.DELETE),),
        tracked_node_labels=("a",),
        honours=("spec",),
    )
    assert decode(Heartbeat, json.loads(json.dumps(heartbeat_json(told)))) == told
    reported = Report(
        run_id="r",
        state=ReportState.FAILED,
        age_seconds=1.5,
        node="n",
        pod_name="p",
        exit_code=137,
        signal=9,
        category="oom",
        subcategory="s",
        hint="h",
        message="m",
        reason="OOM",
        containers=(ContainerEnd(name="main", exit_code=137, reason="r", message="m", is_init=True),),
        attempted=False,
        memory_peak_bytes=1,
        killed_by=KilledBy.MEMORY,
        enforced_by=EnforcedBy.POLL,
        warnings=("w",),
        output=Output(head=b"\x00", tail=b"t", dropped_bytes=1),
    )
    for report in (reported, Report(run_id="r", state=ReportState.RUNNING)):
        assert decode(Report, json.loads(json.dumps(report_json(report)))) == report
    asked = WorkRequest(executor="local", runs=("r",), wait_seconds=1.0)
    assert decode(WorkRequest, work_request_json(asked)) == asked


def test_what_is_written_here_is_what_an_agent_reads() -> None:
    lease = Lease(
        run_id="r",
        job_id="j",
        job_set_id="a/b",
        queue="q",
        namespace="n",
        owner="o",
        number=2,
        node="local-1",
        pod_name="p",
        pod_spec={"containers": [{"is_init": 1}]},
        memory_bytes=7,
        annotations={"is_x": "y"},
        labels={"l": "m"},
    )
    work = Work(
        leases=(lease,),
        stop=(Stop(run_id="r", grace_seconds=1.0, reason="x"), Stop(run_id="s")),
        forget=("t",),
        missed=("u",),
    )
    assert work_from_json(json.loads(json.dumps(encode(work)))) == work
    outcome = ReportOutcome(run_id="r", outcome=Outcome.REFUSED, why="w")
    assert outcomes_from_json(json.loads(json.dumps(encode(Outcomes(outcomes=(outcome,)))))) == (outcome,)
