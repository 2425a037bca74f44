"""Jobs that misbehave: they hide, multiply, stand still, spike, and end in ways that look like something else."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from scheduler.executors.protocol import KilledBy, RunPhase
from scheduler.executors.users import NOBODY, JobUsers
from tests.executors.places import MEBIBYTE, Bench, lease, only_container, output_of

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give jobs users of their own")
SPIKES = "x=$(head -c 90000000 /dev/zero | tr '\\0' x); x="
"""80 MB for a moment, in the shell itself, which goes on."""


@pytest.fixture(scope="module")
def ballast() -> bytearray:
    """300 MB of the agent's own, resident: its size is not the job's."""
    return bytearray(b"x") * (300 * MEBIBYTE)


class TestMemory:
    def test_a_spike_between_two_looks_is_seen_by_what_it_leaves_in_the_counters(self, bench: Bench) -> None:
        seen = bench.run(f"{SPIKES}; sleep 8617", memory_bytes=64 * MEBIBYTE)
        assert only_container(seen) == (137, "OOMKilled")

    @pytest.mark.parametrize(
        ("script", "code"),
        [
            ("exit 3", 3),
            ("exit 137", 137),
            ("ulimit -v 40000; dd if=/dev/zero of=/dev/null bs=100M count=1", 1),
            ("kill -9 $$$$", 137),
        ],
    )
    def test_no_other_end_of_a_small_job_is_memory_however_big_the_agent(
        self, bench: Bench, ballast: bytearray, script: str, code: int
    ) -> None:
        seen = bench.run(script, memory_bytes=16 * MEBIBYTE)
        assert only_container(seen) == (code, "Error")
        assert seen.exit is not None
        assert (seen.exit.memory_peak_bytes or 0) < 16 * MEBIBYTE

    def test_a_kill_by_somebody_else_is_not_memory(self, bench: Bench) -> None:
        given = bench.start(lease("exec sleep 8617", memory_bytes=16 * MEBIBYTE))
        bench.running(given)
        (pid,) = bench.processes(given)
        os.kill(pid, signal.SIGKILL)
        seen = bench.end_of(given)
        assert only_container(seen) == (137, "Error")
        assert seen.exit is not None
        assert seen.exit.killed_by is KilledBy.SIGNAL

    def test_files_in_shared_memory_count_where_the_kernel_counts(self, bench: Bench, rung: str) -> None:
        if rung == "poll":
            pytest.skip("the poller does not see files in memory, and its node says so")
        given = lease(
            "head -c 100000000 /dev/zero > /dev/shm/$TACK_RUN_ID; exit 0", memory_bytes=64 * MEBIBYTE
        )
        seen = bench.end_of(bench.start(given))
        Path("/dev/shm", given.run_id).unlink(missing_ok=True)
        assert only_container(seen) == (137, "OOMKilled")

    def test_processes_that_multiply_end_at_the_limit(self, bench: Bench) -> None:
        given = lease("f() { f & f & sleep 5; }; f; sleep 8617", memory_bytes=24 * MEBIBYTE)
        seen = bench.end_of(bench.start(given))
        assert only_container(seen) == (137, "OOMKilled")
        assert bench.processes(given) == []


class TestEnds:
    def test_a_job_that_stands_still_ends_at_its_deadline(self, bench: Bench) -> None:
        seen = bench.run("kill -STOP $$$$", activeDeadlineSeconds=0.2, terminationGracePeriodSeconds=0.1)
        assert (seen.phase, seen.signals.reason) == (RunPhase.FAILED, "DeadlineExceeded")

    def test_what_keeps_the_output_open_does_not_keep_the_run(self, bench: Bench) -> None:
        seen = bench.run("(trap '' HUP TERM; sleep 8617) & echo done")
        assert seen.phase is RunPhase.SUCCEEDED
        assert output_of(seen) == b"done\n"

    @ROOT_ONLY
    def test_with_its_runner_killed_nothing_of_a_run_stays_though_it_hides(self, bench: Bench) -> None:
        hide = "exec env -i setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep 8617 & sleep 8617'"
        given = bench.start(lease(f"({hide}) & sleep 8617"))
        bench.running(given)
        uid = bench.uid(given)
        bench.until(lambda: len(_processes_of_user(uid)) >= 4)
        claim = bench.folder / "runs" / given.pod_name / "runner.json"
        os.kill(json.loads(claim.read_text())["pid"], signal.SIGKILL)
        assert bench.end_of(given).phase is RunPhase.LOST
        bench.until(lambda: _processes_of_user(uid) == [])


@ROOT_ONLY
def test_a_user_that_has_a_process_is_lent_to_nobody_else() -> None:
    run_id = "a run"
    uid = JobUsers().lend(run_id)
    with subprocess.Popen(["/bin/sleep", "8617"], user=uid) as other:
        assert JobUsers().lend(run_id) not in (uid, NOBODY)
        other.kill()
    assert JobUsers().lend(run_id) == uid


def _processes_of_user(uid: int) -> list[str]:
    return [each.name for each in Path("/proc").iterdir() if each.name.isdigit() and _owner(each) == uid]


def _owner(folder: Path) -> int:
    try:
        return folder.stat().st_uid
    except OSError:
        return -1
