"""The life of jobs through a whole Tack: deadlines, cancelled job sets, runs that give way, another place in the line."""

from typing import Any

import pytest

from lookout.client import Client, Conflict, JobSelection
from tests.journeys.stack import ended, until

QUEUE = "life"
SLEEPS = "trap 'echo goodbye; exit 0' TERM; sleep 600 & wait"


@pytest.fixture(scope="module")
def tack(client: Client) -> Client:
    """With a queue."""
    client.create_queue({"name": QUEUE})
    return client


def submit(client: Client, job_set: str, command: str = SLEEPS, **spec: Any) -> str:
    resources = {"limits": {"cpu": "10m", "memory": "16Mi"}}
    container = {"name": "main", "command": ["sh", "-c", command], "resources": resources}
    job = {"podSpec": {"terminationGracePeriodSeconds": 10, "containers": [container], **spec}}
    (submitted,) = client.submit_jobs({"queue": QUEUE, "jobSetId": job_set, "jobs": [job]})
    return submitted.job_id


def runs(client: Client, job_id: str) -> bool:
    return client.job(job_id).state == "running"


def kinds(client: Client, job_set: str) -> list[str]:
    return [event.kind for event in client.events(QUEUE, job_set)]


def test_a_run_past_its_deadline_fails_and_says_so(tack: Client) -> None:
    job = ended(tack, submit(tack, "deadline", "sleep 600", activeDeadlineSeconds=1))
    assert (job.state, job.runs[0].killed_by) == ("failed", "deadline")
    failed = list(tack.events(QUEUE, "deadline"))[-1]
    assert (failed.kind, failed.fields["cause"], failed.retryable) == ("failed", "DeadlineExceeded", False)


def test_a_job_set_is_cancelled_and_what_runs_has_its_grace(tack: Client) -> None:
    jobs = [submit(tack, "cancelled") for _ in range(2)]
    until(lambda: all(runs(tack, job) for job in jobs))
    done = tack.cancel_jobs(JobSelection(queue=QUEUE, job_set_id="cancelled"), reason="enough")
    assert sorted(done.cancelling) == sorted(jobs)
    for job in jobs:
        detail = ended(tack, job)
        assert (detail.state, detail.cancel_reason) == ("cancelled", "enough")
        assert tack.run_output(detail.runs[0].run_id) == "goodbye\n"
    assert kinds(tack, "cancelled")[-2:] == ["cancelled", "cancelled"]


def test_a_run_gives_way_with_its_grace_and_its_job_ends_as_preempted(tack: Client) -> None:
    job = submit(tack, "preempted", priorityClassName="armada-preemptible")
    until(lambda: runs(tack, job))
    tack.preempt_jobs(JobSelection(executor="local"), reason="room for others")
    detail = ended(tack, job)
    assert (detail.state, detail.runs[0].state) == ("preempted", "preempted")
    assert tack.run_output(detail.runs[0].run_id) == "goodbye\n"
    assert kinds(tack, "preempted")[-3:] == ["preempting", "preempted", "failed"]
    assert list(tack.events(QUEUE, "preempted"))[-1].reason == "room for others"


def test_a_run_of_another_class_stays_where_it_is(tack: Client) -> None:
    job = submit(tack, "stays")
    until(lambda: runs(tack, job))
    with pytest.raises(Conflict, match="not preemptible"):
        tack.preempt_jobs([job])
    assert tack.reprioritize_jobs([job], priority=4).reprioritized == (job,)
    assert (tack.job(job).state, tack.job(job).priority) == ("running", 4)
    tack.cancel_jobs([job])
    assert ended(tack, job).state == "cancelled"
