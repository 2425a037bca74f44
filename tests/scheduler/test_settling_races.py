"""Settling under race and violence: many processes, a late lock, a worker killed in the middle."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction

from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.models import Decision, Event, Job, Run, events, jobs
from scheduler.publishing import Deleted, delete_policy
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.factories import make_job, make_policy, make_queue, make_run
from tests.people import OLGA

ON = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), indexed_node_labels=("kubernetes.io/hostname",)
)
pytestmark = pytest.mark.django_db(transaction=True)


def failed_jobs(count: int) -> None:
    make_policy()
    queue = make_queue(policies=("oom-grow",))
    for number in range(count):
        make_run(make_job(queue, job_set=f"set-{number % 3}"), state=RunState.FAILED)


def each_was_settled_once(count: int) -> None:
    assert Decision.objects.filter(verdict="retry").count() == count
    assert Job.objects.filter(state="queued", queued_version=2, memory_factor=2.0).count() == count
    assert Event.objects.filter(kind="failed").count() == count
    for job_set in {event.job_set_id for event in Event.objects.all()}:
        numbers = list(
            Event.objects.filter(job_set=job_set).values_list("number", flat=True).order_by("number")
        )
        assert numbers == list(range(1, len(numbers) + 1))


def in_a_process(work: Callable[[], object]) -> int:
    """Fork a process that works on connections of its own and ends without running this one's clean-up."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        for each in connections.all(initialized_only=True):
            each.inc_thread_sharing()
            each.connection = None
        work()
        status = 0
    finally:
        os._exit(status)


def test_thirty_two_processes_settle_the_same_runs_once() -> None:
    failed_jobs(60)

    def settle_all() -> None:
        while Run.objects.filter(settled_at=None).exists():
            settle_runs(config=ON, limit=7)

    connections.close_all()
    workers = [in_a_process(settle_all) for _ in range(32)]
    assert {os.waitpid(pid, 0)[1] for pid in workers} == {0}
    each_was_settled_once(60)


def test_a_worker_held_between_its_snapshot_and_its_lock_decides_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed_jobs(3)
    gated = jobs._CLAIM.replace(
        "ON j.id = chosen.job_id",
        "ON j.id = chosen.job_id AND (SELECT pg_advisory_lock_shared(42)::text = '')",
    )
    assert gated != jobs._CLAIM
    late: list[int] = []

    def settle_late() -> None:
        try:
            late.append(settle_runs(config=ON).runs)
        finally:
            connections.close_all()

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(42)")
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_CLAIM", gated)
        worker = threading.Thread(target=settle_late)
        worker.start()
        until_somebody_waits_for_the_gate()
    assert settle_runs(config=ON).runs == 3
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(42)")
    worker.join(timeout=30)
    assert late == [0]
    each_was_settled_once(3)


def until_somebody_waits_for_the_gate() -> None:
    with connection.cursor() as cursor:
        waiting = 0
        while not waiting:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            (waiting,) = cursor.fetchone()


def test_a_worker_killed_in_the_middle_of_a_batch_leaves_nothing_half_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed_jobs(20)
    reading, writing = os.pipe()

    def stop_before_the_last_statement(*_: object) -> None:
        os.write(writing, b"!")
        signal.pause()

    connections.close_all()
    with monkeypatch.context() as patch:
        patch.setattr(events.EventManager, "append", stop_before_the_last_statement)
        worker = in_a_process(lambda: settle_runs(config=ON))
    os.close(writing)  # a worker that dies early is seen as the end of the pipe
    assert os.read(reading, 1) == b"!"
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    assert not Decision.objects.exists()
    with (
        transaction.atomic()
    ):  # the server lets go of the dead worker's locks before it lets go of the worker
        list(Job.objects.select_for_update(no_key=True))
    assert settle_runs(config=ON).runs == 20
    each_was_settled_once(20)


def test_a_policy_deleted_while_runs_are_settled_still_decides_about_them() -> None:
    failed_jobs(2)
    deletion: list[object] = []

    def delete_after_the_attachments_were_read(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "scheduler_queuepolicy" in sql and not deletion:
            deletion.append(in_a_thread(lambda: delete_policy(name="oom-grow", detach=True, actor=OLGA)))
        return result

    with connection.execute_wrapper(delete_after_the_attachments_were_read):
        assert settle_runs(config=ON).requeued == 2
    assert deletion == [Deleted(existed=True, detached=("nightly",))]
    each_was_settled_once(2)


def in_a_thread(work: Callable[[], object]) -> object:
    """What the work returns, on a connection of its own."""
    results = []

    def run() -> None:
        try:
            results.append(work())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)
    return results[0]
