"""The broker gone or frozen, a worker killed: everybody is answered, nothing is lost, work goes on."""

import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

from lookout.client import Client
from tests.benchmarks.scratch import Scratch
from tests.journeys.stack import Processes, ended, until

QUEUE = "trouble"
POLICY = {
    "apiVersion": "armadaproject.io/v1beta1",
    "kind": "RetryPolicy",
    "name": "again",
    "retryLimit": 1,
    "defaultAction": "Fail",
    "rules": [{"action": "Retry", "onCategory": "oom"}],
}
RUNS_OUT_OF_MEMORY = "dd if=/dev/zero of=/dev/null bs=67108864 count=1"


@pytest.fixture(scope="module")
def tack(client: Client) -> Client:
    """With a queue whose policy retries once what ran out of memory, with no more than it had."""
    client.create_retry_policy(POLICY)
    client.create_queue({"name": QUEUE, "retryPolicies": ["again"]})
    return client


@pytest.fixture(scope="module")
def processes(whole_tack: Scratch) -> Processes:
    return Processes(var=whole_tack.var)


def submit(client: Client, *, command: str = "true", jobs: int = 1) -> list[str]:
    job: dict[str, Any] = {
        "podSpec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "command": ["sh", "-c", command],
                    "resources": {"limits": {"cpu": "10m", "memory": "16Mi"}},
                }
            ],
        }
    }
    submitted = client.submit_jobs({"queue": QUEUE, "jobSetId": "trouble", "jobs": [job] * jobs})
    return [each.job_id for each in submitted]


def each_within_a_second(calls: dict[str, Callable[[], object]]) -> None:
    slow = {}
    for name, call in calls.items():
        started = time.monotonic()
        call()
        took = time.monotonic() - started
        if took >= 1.0:
            slow[name] = took
    assert slow == {}


def test_with_a_frozen_broker_every_page_and_verb_answers_within_a_second_and_work_goes_on_later(
    tack: Client, processes: Processes
) -> None:
    [waiting] = submit(tack, command="sleep 60")
    jobs: list[str] = []
    with processes.frozen("valkey-server"):
        each_within_a_second(
            {
                "submit": lambda: jobs.extend(submit(tack)),
                "submit again": lambda: jobs.extend(submit(tack)),
                "cancel": lambda: tack.cancel_jobs([waiting]),
                "jobs": lambda: list(tack.jobs(queue=[QUEUE])),
                "job": lambda: tack.job(waiting),
                "events": lambda: list(tack.events(QUEUE, "trouble")),
                "create queue": lambda: tack.create_queue({"name": "made-meanwhile"}),
                "delete queue": lambda: tack.delete_queue("made-meanwhile"),
                "update policy": lambda: tack.update_retry_policy("again", {**POLICY, "retryLimit": 2}),
                "fleet": lambda: tack.executors(),
            }
        )
    assert {ended(tack, job).state for job in jobs} == {"succeeded"}
    assert ended(tack, waiting).state == "cancelled"


def test_a_broker_killed_and_robbed_of_its_data_loses_nothing(tack: Client, processes: Processes) -> None:
    jobs = submit(tack, command=RUNS_OUT_OF_MEMORY, jobs=5)
    shutil.rmtree(processes.var / "broker" / "appendonlydir", ignore_errors=True)
    processes.kill("valkey-server")
    each_within_a_second({"submit": lambda: jobs.extend(submit(tack, command=RUNS_OUT_OF_MEMORY))})
    for job in jobs:
        runs = ended(tack, job).runs
        assert [run.state for run in runs] == ["failed"] * len(runs)
        assert [run.retryable for run in runs] == [True] * (len(runs) - 1) + [False]


def test_workers_killed_in_the_middle_of_their_work_decide_nothing_twice(
    tack: Client, processes: Processes
) -> None:
    limit = tack.retry_policy("again").policy["retryLimit"]
    jobs = submit(tack, command=RUNS_OUT_OF_MEMORY, jobs=10)
    for _ in range(3):
        until(lambda: bool(processes.of("lookout.celery worker")))
        processes.kill("lookout.celery worker")
    for job in jobs:
        detail = ended(tack, job)
        assert len(detail.runs) == limit + 1
        assert len(list(tack.decisions(job_id=job))) == limit + 1
