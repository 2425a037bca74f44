"""With retry policies switched off clients hear what they always heard: whole lives, byte for byte as written down.

The files beside this one were written by hand from the model's event catalogue and its scenarios. Ids and times differ
from life to life; everything else, and the order, does not. Nothing writes these files.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from policies.signals import ContainerEnd
from scheduler.cancelling import cancel_jobs
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.errors import Conflict
from scheduler.executors.protocol import Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.jobfile import parse_job_file
from scheduler.leasing import run_round
from scheduler.models import Executor, Job, Node, Run
from scheduler.models.clock import database_now
from scheduler.preempting import preempt_jobs
from scheduler.priorityclasses import DEFAULT_CLASSES, ClassConfiguration
from scheduler.queries.events import events_after
from scheduler.reporting import record_reports
from scheduler.reprioritising import reprioritize_jobs
from scheduler.settling import settle_runs
from scheduler.submission import submit_jobs
from tests.factories import POD_SPEC, make_executor, make_policy, make_queue
from tests.people import ALICE, OLGA

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "flag_off"
LABEL = "kubernetes.io/hostname"
OFF = Configuration(
    retry_policy=RetryPolicyConfiguration(default_policy_name="anything"),
    max_retries=1,
    node_id_label=LABEL,
    indexed_node_labels=(LABEL,),
    priority_classes={**DEFAULT_CLASSES, "urgent": ClassConfiguration(priority=2_000)},
)
"""A default policy is named as well, and nobody asks for it."""
ON = replace(OFF, retry_policy=RetryPolicyConfiguration(enabled=True))
RUNS = (ReportState.PENDING, ReportState.RUNNING)


@pytest.fixture(autouse=True)
def _world() -> None:
    """Two nodes, and a queue with a policy that would retry anything."""
    make_policy("anything", retryLimit=9, defaultAction="Retry", rules=[])
    make_queue("nightly", policies=("anything",))
    make_executor("local", nodes=2)


class Life:
    """A job, from its submission on."""

    def __init__(
        self, *, memory: str = "64Mi", annotations: dict[str, str] | None = None, class_name: str = ""
    ) -> None:
        container = {**POD_SPEC["containers"][0], "resources": {"limits": {"memory": memory, "cpu": "1"}}}
        pod: dict[str, Any] = {"containers": [container]}
        if class_name:
            pod["priorityClassName"] = class_name
        self.job_id = self.submit({"podSpec": pod, "annotations": annotations or {}}, job_set="set/1")

    def submit(self, job: dict[str, Any], *, job_set: str) -> str:
        file = parse_job_file({"queue": "nightly", "jobSetId": job_set, "jobs": [job]})
        [made] = submit_jobs(
            queue=file.queue, job_set=file.job_set, items=file.items, actor=ALICE, config=OFF
        )
        return made.job_id

    def lease(self) -> None:
        assert run_round(pool="default", config=OFF).placed == 1

    def report(self, *states: ReportState, config: Configuration = OFF, **fields: Any) -> None:
        run = Run.objects.filter(job=self.job_id).latest("number")
        for state in states:
            record_reports(executor="local", reports=[Report(run_id=str(run.id), state=state, **fields)])
        settle_runs(config=config)

    def fail(self, *, config: Configuration = OFF) -> None:
        end = ContainerEnd(name="main", exit_code=42, reason="Error", message="no input")
        text = "Container main failed with exit code 42 because Error: no input\n"
        self.report(
            ReportState.FAILED,
            config=config,
            category="app",
            message=text,
            reason="AppError",
            containers=(end,),
        )

    def cancel(self) -> None:
        cancel_jobs(job_ids=[self.job_id], actor=OLGA)

    def preempt(self) -> None:
        preempt_jobs(job_ids=[self.job_id], actor=OLGA, config=OFF)

    def fall_silent(self) -> None:
        Executor.objects.update(heartbeat_at=database_now() - timedelta(days=1))
        assert expire_leases(config=OFF) == 1
        settle_runs(config=OFF)

    def heard(self) -> str:
        """What a client of the job set heard: an event a line."""
        messages = [event.message for event in events_after("nightly", "set/1").events]
        text = "".join(f"{json.dumps(message, sort_keys=True)}\n" for message in messages)
        return with_names_for_what_differs(text)


def with_names_for_what_differs(text: str) -> str:
    """Names in the place of ids and times, which no two lives have in common."""
    text = re.sub(r'"created": "[^"]*"', '"created": "<time>"', text)
    for number, job_id in enumerate(Job.objects.order_by("id").values_list("id", flat=True)):
        text = text.replace(job_id, "<other job>" if number else "<job>")
    for run in Run.objects.all():
        text = text.replace(str(run.id), f"<run {run.number}>")
    return text


def succeeded() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS, ReportState.SUCCEEDED)
    return life


def failed() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    life.fail()
    return life


def lease_returned_and_run_again() -> Life:
    life = Life()
    life.lease()
    life.report(ReportState.PENDING)
    life.report(ReportState.LEASE_RETURNED, message="node drained")
    life.lease()
    life.report(*RUNS, ReportState.SUCCEEDED)
    return life


def lease_returned_too_often() -> Life:
    life = Life()
    for _ in range(2):
        life.lease()
        life.report(ReportState.PENDING)
        life.report(ReportState.LEASE_RETURNED, message="node drained")
    return life


def lease_returned_to_a_job_that_fails_fast() -> Life:
    life = Life(annotations={"armadaproject.io/failFast": "true"})
    life.lease()
    life.report(ReportState.PENDING)
    life.report(ReportState.LEASE_RETURNED, attempted=False)
    return life


def lease_expired() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    life.fall_silent()
    return life


def cancelled_while_queued() -> Life:
    life = Life()
    life.cancel()
    return life


def cancelled_while_running() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    life.cancel()
    life.report(ReportState.CANCELLED)
    return life


def rejected() -> Life:
    return Life(memory="4Gi")


def out_of_memory() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    ends = (
        ContainerEnd(name="main", exit_code=137, reason="OOMKilled"),
        ContainerEnd(name="prepare", exit_code=3, reason="Error", message="no disk", is_init=True),
    )
    message = "Container main failed with exit code 137 because OOMKilled: \n\n\nAsk for more memory."
    life.report(
        ReportState.FAILED, category="oom", subcategory="main", message=message, reason="OOM", containers=ends
    )
    return life


def failed_without_a_word() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    life.report(ReportState.FAILED)
    return life


def lease_returned_unattempted_and_run_again() -> Life:
    life = Life()
    for _ in range(3):
        life.lease()
        life.report(ReportState.LEASE_RETURNED, message="no node in time", attempted=False)
    life.lease()
    life.report(*RUNS, ReportState.SUCCEEDED)
    return life


def lease_returned_and_no_other_node() -> Life:
    Node.objects.filter(name="local-2").delete()
    life = Life()
    life.lease()
    life.report(ReportState.PENDING)
    life.report(ReportState.LEASE_RETURNED, message="node drained")
    return life


def cancelled_and_failed_before_it_was_stopped() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    life.cancel()
    life.fail()
    return life


def reprioritized_and_failed() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    reprioritize_jobs(job_ids=[life.job_id], priority=7, actor=OLGA)
    life.fail()
    return life


def preempted_on_request() -> Life:
    life = Life(class_name="armada-preemptible")
    life.lease()
    life.report(*RUNS)
    life.preempt()
    life.report(ReportState.CANCELLED)
    return life


def not_preemptible() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    with suppress(Conflict):
        life.preempt()
    life.report(ReportState.SUCCEEDED)
    return life


def preempted_by_a_round() -> Life:
    Node.objects.filter(name="local-2").delete()
    Node.objects.update(cpu_millicores=1_000)
    life = Life(class_name="armada-preemptible")
    life.lease()
    life.report(*RUNS)
    life.submit({"podSpec": {**POD_SPEC, "priorityClassName": "urgent"}}, job_set="urgent")
    life.lease()
    return life


def switched_off_after_a_retry() -> Life:
    life = Life()
    life.lease()
    life.report(*RUNS)
    life.fail(config=ON)
    life.lease()
    life.report(*RUNS)
    life.fail()
    return life


LIVES = (
    succeeded, failed, out_of_memory, failed_without_a_word, lease_returned_and_run_again,
    lease_returned_unattempted_and_run_again, lease_returned_too_often, lease_returned_and_no_other_node,
    lease_returned_to_a_job_that_fails_fast, lease_expired, rejected, cancelled_while_queued,
    cancelled_while_running, cancelled_and_failed_before_it_was_stopped, reprioritized_and_failed,
    preempted_on_request, not_preemptible, preempted_by_a_round, switched_off_after_a_retry,
)  # fmt: skip
STIMULI = {
    "run_failed": failed,
    "run_succeeded": succeeded,
    "lease_returned": lease_returned_too_often,
    "executor_heartbeat_stale": lease_expired,
    "preemption_requested": preempted_on_request,
    "preempted_by_scheduler": preempted_by_a_round,
    "submit_check_failed": rejected,
    "run_failed_and_cancel_requested": cancelled_and_failed_before_it_was_stopped,
    "run_failed_and_reprioritised": reprioritized_and_failed,
}
"""What happens in the model's scenarios, and the life in which it happens here."""


@pytest.mark.parametrize("live", LIVES, ids=lambda live: live.__name__)
def test_clients_hear_what_is_written_down(live: Callable[[], Life]) -> None:
    recorded = (RECORDED / f"{live.__name__}.jsonl").read_bytes()
    assert live().heard().encode() == recorded


@pytest.mark.parametrize(
    "live", [live for live in LIVES if live is not switched_off_after_a_retry], ids=lambda live: live.__name__
)
def test_no_policy_is_read(live: Callable[[], Life]) -> None:
    with connection.execute_wrapper(_refuse_policies):
        live()


def _refuse_policies(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    assert "scheduler_retrypolicy" not in sql and "scheduler_queuepolicy" not in sql
    return execute(sql, *rest)


def test_every_life_that_is_written_down_is_lived() -> None:
    assert {path.stem for path in RECORDED.iterdir()} == {live.__name__ for live in LIVES}


def test_everything_that_happens_in_a_scenario_happens_in_a_life() -> None:
    document = json.loads((ROOT / "tests/conformance/data/scenarios.json").read_text(encoding="utf-8"))
    assert {row["stimulus"]["kind"] for row in document["scenarios"]} <= set(STIMULI)


def test_nothing_writes_what_is_written_down() -> None:
    """The files are the truth that the code is held to, so no code may make them."""
    folders = ("policies", "scheduler", "lookout", "tests", ".ci")
    programs = [path.read_text("utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")]
    knowing = [program for program in programs if RECORDED.name in program]
    writing = ["write" + way for way in ("_text", "_bytes", "lines", "(")] + ["open" + "(", "copy" + "("]
    assert len(knowing) >= 1
    assert [word for program in knowing for word in writing if word in program] == []
