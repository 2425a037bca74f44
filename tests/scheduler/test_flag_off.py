"""With retry policies switched off clients hear what they always heard: whole lives, byte for byte as written down.

The files beside this one were written by hand from the model's event catalogue. Ids and times differ from life to
life; everything else, and the order, does not.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from policies.signals import ContainerEnd
from scheduler.cancelling import cancel_jobs
from scheduler.config import Configuration
from scheduler.executors.protocol import Report, ReportState
from scheduler.jobfile import parse_job_file
from scheduler.leasing import expire_leases, run_round
from scheduler.models import Executor, Run
from scheduler.models.clock import database_now
from scheduler.queries.events import events_after
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.submission import submit_jobs
from tests.factories import POD_SPEC, make_executor, make_policy, make_queue
from tests.people import ALICE, OLGA

pytestmark = pytest.mark.django_db(transaction=True)

RECORDED = Path(__file__).parent / "flag_off"
OFF = Configuration(max_retries=1)


class Life:
    """A job, from its submission on. Its queue has a policy that would retry anything."""

    def __init__(self, *, memory: str = "64Mi", annotations: dict[str, str] | None = None) -> None:
        make_policy("anything", retryLimit=9, defaultAction="Retry", rules=[])
        make_queue("nightly", policies=("anything",))
        make_executor("local", nodes=2)
        container = {**POD_SPEC["containers"][0], "resources": {"limits": {"memory": memory, "cpu": "1"}}}
        job = {"podSpec": {"containers": [container]}, "annotations": annotations or {}}
        file = parse_job_file({"queue": "nightly", "jobSetId": "set/1", "jobs": [job]})
        [self.job] = submit_jobs(
            queue=file.queue, job_set=file.job_set, items=file.items, actor=ALICE, config=OFF
        )

    def lease(self) -> None:
        assert run_round(pool="default", config=OFF).placed == 1

    def report(self, *states: ReportState, **fields: Any) -> None:
        run = Run.objects.latest("number")
        for state in states:
            record_reports(executor="local", reports=[Report(run_id=str(run.id), state=state, **fields)])
        settle_runs(config=OFF)

    def cancel(self) -> None:
        cancel_jobs(job_ids=[self.job.job_id], actor=OLGA)

    def fall_silent(self) -> None:
        Executor.objects.update(heartbeat_at=database_now() - timedelta(days=1))
        assert expire_leases(config=OFF) == 1
        settle_runs(config=OFF)

    def heard(self) -> str:
        """What a client of the job set heard: an event a line, names for what differs from life to life."""
        lines = []
        for event in events_after("nightly", "set/1").events:
            (fields,) = event.message.values()
            line = json.dumps(event.message, sort_keys=True)
            lines.append(line.replace(str(fields["created"]), "<time>"))
        text = "".join(f"{line}\n" for line in lines).replace(self.job.job_id, "<job>")
        for run in Run.objects.all():
            text = text.replace(str(run.id), f"<run {run.number}>")
        return text


def succeeded() -> Life:
    life = Life()
    life.lease()
    life.report(ReportState.PENDING, ReportState.RUNNING, ReportState.SUCCEEDED)
    return life


def failed() -> Life:
    life = Life()
    life.lease()
    life.report(ReportState.PENDING, ReportState.RUNNING)
    end = ContainerEnd(name="main", exit_code=42, reason="Error", message="no input")
    text = "Container main failed with exit code 42 because Error: no input\n"
    life.report(ReportState.FAILED, category="app", message=text, reason="AppError", containers=(end,))
    return life


def lease_returned_and_run_again() -> Life:
    life = Life()
    life.lease()
    life.report(ReportState.PENDING)
    life.report(ReportState.LEASE_RETURNED, message="node drained")
    life.lease()
    life.report(ReportState.PENDING, ReportState.RUNNING, ReportState.SUCCEEDED)
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
    life.report(ReportState.PENDING, ReportState.RUNNING)
    life.fall_silent()
    return life


def cancelled_while_queued() -> Life:
    life = Life()
    life.cancel()
    return life


def cancelled_while_running() -> Life:
    life = Life()
    life.lease()
    life.report(ReportState.PENDING, ReportState.RUNNING)
    life.cancel()
    life.report(ReportState.CANCELLED)
    return life


def rejected() -> Life:
    return Life(memory="4Gi")


LIVES = (
    succeeded, failed, lease_returned_and_run_again, lease_returned_too_often, rejected, lease_expired,
    lease_returned_to_a_job_that_fails_fast, cancelled_while_queued, cancelled_while_running,
)  # fmt: skip


@pytest.mark.parametrize("live", LIVES, ids=lambda live: live.__name__)
def test_clients_hear_what_is_written_down(live: Callable[[], Life]) -> None:
    recorded = (RECORDED / f"{live.__name__}.jsonl").read_bytes()
    assert live().heard().encode() == recorded


def test_every_life_that_is_written_down_is_lived() -> None:
    assert {path.stem for path in RECORDED.iterdir()} == {live.__name__ for live in LIVES}
