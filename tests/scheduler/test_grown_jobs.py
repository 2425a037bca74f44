"""What a policy changed of a job stays changed: where it goes, what it holds, what it gets, and when it gives way."""

from typing import Any

import pytest

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import Report, ReportState
from scheduler.jobfile import parse_job_file
from scheduler.leasing import run_round
from scheduler.models import Decision, Job, Node, Run
from scheduler.preempting import preempt_jobs
from scheduler.priorityclasses import DEFAULT_CLASSES, ClassConfiguration
from scheduler.queries.fleet import uses
from scheduler.queries.work import work_for
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.submission import submit_jobs
from tests.factories import MEBI, POD_SPEC, make_executor, make_node, make_policy, make_queue
from tests.people import OLGA

pytestmark = pytest.mark.django_db(transaction=True)

LABEL = "kubernetes.io/hostname"
CONFIG = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True),
    node_id_label=LABEL,
    indexed_node_labels=(LABEL,),
    priority_classes={**DEFAULT_CLASSES, "urgent": ClassConfiguration(priority=2_000)},
    requeue_preempted=True,
)
GROW: dict[str, Any] = {"memory": {"factor": 2}}
RUNS = (ReportState.PENDING, ReportState.RUNNING)


def begin(*nodes: int, avoid: bool = False) -> str:
    """A job of 64Mi on its first run, in a fleet of nodes of so many Mi."""
    mutate = {"resources": GROW} | ({"affinity": {"avoidSameNode": True}} if avoid else {})
    make_policy("oom-grow", rules=[{"action": "Retry", "onCategory": "oom", "mutate": mutate}])
    make_queue("nightly", policies=("oom-grow",))
    executor = make_executor("local", nodes=0)
    for memory in nodes:
        make_node(executor, memory_bytes=memory * MEBI)
    job_id = submit("armada-preemptible")
    lease()
    return job_id


def submit(class_name: str, **pod: Any) -> str:
    job = {"podSpec": {**POD_SPEC, "priorityClassName": class_name, **pod}}
    file = parse_job_file({"queue": "nightly", "jobSetId": "set", "jobs": [job]})
    [made] = submit_jobs(queue=file.queue, job_set=file.job_set, items=file.items, actor=OLGA, config=CONFIG)
    return made.job_id


def lease() -> None:
    assert run_round(pool="default", config=CONFIG).placed == 1


def report(job_id: str, *states: ReportState, **fields: Any) -> None:
    run = Run.objects.filter(job=job_id).latest("number")
    for state in states:
        found = Report(run_id=str(run.id), state=state, **fields)
        record_reports(executor="local", reports=[found], requeue_preempted=True)
    settle_runs(config=CONFIG)


def run_out_of_memory(job_id: str) -> None:
    report(job_id, *RUNS)
    report(job_id, ReportState.FAILED, category="oom")


def last_run(job_id: str) -> Run:
    return Run.objects.filter(job=job_id).latest("number")


def test_a_grown_job_goes_only_where_it_fits() -> None:
    job_id = begin(100, 1024)
    assert last_run(job_id).node == "local-1"
    run_out_of_memory(job_id)
    lease()
    assert last_run(job_id).node == "local-2"


def test_a_grown_run_holds_what_it_has_grown_to() -> None:
    job_id = begin(150)
    run_out_of_memory(job_id)
    lease()
    [[use]] = uses(pools=["default"]).of_nodes.values()
    assert use.memory_bytes == 128 * MEBI
    submit("armada-default")
    assert run_round(pool="default", config=CONFIG).placed == 0


def test_the_process_gets_what_the_job_has_grown_to() -> None:
    job_id = begin(1024)
    run_out_of_memory(job_id)
    lease()
    [found] = work_for(executor="local", known_runs=()).leases
    assert found.memory_bytes == 128 * MEBI
    assert found.pod_spec["containers"][0]["resources"]["limits"]["memory"] == "128Mi"


def test_growth_compounds_exactly_over_several_retries() -> None:
    job_id = begin(4096)
    for _ in range(2):
        run_out_of_memory(job_id)
        lease()
    assert last_run(job_id).memory_limit_bytes == 256 * MEBI
    assert (last_run(job_id).memory_factor, last_run(job_id).memory_static_bytes) == (4.0, 0)


def test_who_is_asked_to_give_way_keeps_what_it_had_grown_to_and_what_it_avoids() -> None:
    job_id = begin(1024, 1024, avoid=True)
    run_out_of_memory(job_id)
    lease()
    report(job_id, *RUNS)
    preempt_jobs(job_ids=[job_id], actor=OLGA, config=CONFIG)
    report(job_id, ReportState.CANCELLED)
    job = Job.objects.get(id=job_id)
    assert (job.state, job.memory_limit_bytes, job.avoided_nodes) == ("queued", 128 * MEBI, ["local-1"])
    lease()
    assert (last_run(job_id).node, last_run(job_id).memory_limit_bytes) == ("local-2", 128 * MEBI)


def test_who_gives_way_to_a_more_urgent_job_keeps_what_it_had_grown_to() -> None:
    job_id = begin(1024)
    run_out_of_memory(job_id)
    lease()
    report(job_id, *RUNS)
    Node.objects.update(memory_bytes=150 * MEBI)
    urgent = submit("urgent")
    lease()
    assert last_run(urgent).node == "local-1"
    job = Job.objects.get(id=job_id)
    assert (job.state, job.memory_limit_bytes, job.memory_factor) == ("queued", 128 * MEBI, 2.0)


def test_giving_way_spends_no_retry() -> None:
    job_id = begin(4096)
    run_out_of_memory(job_id)
    for _ in range(3):
        lease()
        report(job_id, *RUNS)
        preempt_jobs(job_ids=[job_id], actor=OLGA, config=CONFIG)
        report(job_id, ReportState.CANCELLED)
    lease()
    run_out_of_memory(job_id)
    assert list(Decision.objects.order_by("decided_at").values_list("verdict", "policy_used_before")) == [
        ("retry", 0),
        ("retry", 1),
    ]
