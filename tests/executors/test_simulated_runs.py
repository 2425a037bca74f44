"""The simulated executor keeps what the protocol promises."""

import threading

import pytest

from policies.failures import INTERNAL, Failure, InternalSubcategory
from scheduler.executors.protocol import (
    Executor,
    KilledBy,
    Lease,
    NameTakenError,
    NodeDescription,
    Observation,
    RunPhase,
)
from scheduler.executors.simulated import (
    Play,
    Script,
    SimulatedExecutor,
    exits,
    lost,
    needs_memory,
    succeeds,
)

MEBI = 1 << 20
NODE = NodeDescription(name="local-1", cpu_millicores=1_000, memory_bytes=1024 * MEBI)


def executor(play: Play) -> SimulatedExecutor:
    return SimulatedExecutor(nodes=[NODE], play=play)


def lease(run: str = "run-1", *, pod: str = "armada-job-0", memory_bytes: int = 0) -> Lease:
    return Lease(
        run_id=run,
        job_id="job",
        job_set_id="set",
        queue="nightly",
        namespace="default",
        owner="alice",
        number=1,
        node="local-1",
        pod_name=pod,
        pod_spec={},
        memory_bytes=memory_bytes,
    )


def seen(at: Executor, number: int) -> list[Observation]:
    found: list[Observation] = []
    while len(found) < number:
        found += at.observe(timeout=5.0)
    return found


def test_a_run_is_seen_running_and_then_as_its_script_says() -> None:
    at = executor(lambda _: Script(ending=exits(3, message="no such table"), seconds=0.01))
    at.start(lease())
    running, ended = seen(at, 2)
    assert (running.phase, ended.phase) == (RunPhase.RUNNING, RunPhase.FAILED)
    assert ended.signals.containers[0].exit_code == 3
    assert ended.signals.containers[0].message == "no such table"


def test_a_run_that_needs_more_memory_than_its_lease_is_killed_for_it() -> None:
    at = executor(needs_memory(100 * MEBI))
    at.start(lease(memory_bytes=64 * MEBI))
    *_, ended = seen(at, 2)
    assert ended.exit is not None
    assert (ended.exit.killed_by, ended.signals.containers[0].reason) == (KilledBy.MEMORY, "OOMKilled")
    at.remove("armada-job-0")
    at.start(lease("run-2", memory_bytes=128 * MEBI))
    assert seen(at, 2)[-1].phase is RunPhase.SUCCEEDED


def test_a_name_is_free_again_when_its_remains_are_removed_and_not_before() -> None:
    at = executor(lambda _: Script(ending=succeeds()))
    at.start(lease())
    with pytest.raises(NameTakenError):
        at.start(lease("run-2"))
    at.removes = False
    at.remove("armada-job-0")
    assert at.remains("armada-job-0").present
    at.removes = True
    at.remove("armada-job-0")
    assert not at.remains("armada-job-0").present
    at.start(lease("run-2"))


def test_a_run_works_until_it_is_stopped_and_a_later_agent_finds_it() -> None:
    at = executor(lambda _: Script(ending=succeeds(), seconds=None))
    at.start(lease())
    assert at.adopt(run_id="run-1", pod_name="armada-job-0")
    assert not at.adopt(run_id="run-2", pod_name="armada-job-0")
    at.stop("run-1", grace_seconds=30)
    at.stop("run-1", grace_seconds=0)
    _, ended = seen(at, 2)
    assert ended.exit is not None
    assert ended.exit.killed_by is KilledBy.STOP


def test_a_lost_run_names_its_failure() -> None:
    gone = Failure(category=INTERNAL, subcategory=InternalSubcategory.NODE_FAILURE)
    at = executor(lambda _: Script(ending=lost(gone)))
    at.start(lease())
    assert seen(at, 2)[-1].failure == gone


def test_waiting_for_news_ends_when_it_is_woken() -> None:
    at = executor(lambda _: Script(ending=succeeds()))
    threading.Timer(0.01, at.wake).start()
    assert at.observe(timeout=30.0) == []
