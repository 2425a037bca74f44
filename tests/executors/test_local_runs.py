"""Runs on the local executor, by real processes, on every rung of the memory ladder this machine has."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.executors.capture import KEPT_BYTES
from scheduler.executors.local import LocalExecutor
from scheduler.executors.protocol import (
    EnforcedBy,
    KilledBy,
    LeaseImpossibleError,
    NameTakenError,
    RunPhase,
    TaintDescription,
    TaintEffect,
)
from scheduler.executors.slices import Slice
from tests.executors.agents import processes_of
from tests.executors.places import MEBIBYTE, Bench, lease, only_container, output_of, settings

ALLOCATE = "dd if=/dev/zero of=/dev/null bs=100M count=1"


class TestEnds:
    def test_a_run_that_exits_0_succeeds_with_its_output(self, bench: Bench) -> None:
        seen = bench.run("echo out; echo err >&2")
        assert seen.phase is RunPhase.SUCCEEDED
        assert output_of(seen) == b"out\nerr\n"

    def test_a_code_arrives_as_it_is(self, bench: Bench) -> None:
        seen = bench.run("echo why; exit 3")
        assert seen.phase is RunPhase.FAILED
        assert only_container(seen) == (3, "Error")
        assert seen.exit is not None
        assert (seen.exit.exit_code, seen.exit.signal, seen.exit.killed_by) == (3, None, KilledBy.NOTHING)
        assert seen.signals.containers[0].message == "why"

    def test_a_run_is_seen_running_before_it_ends(self, bench: Bench) -> None:
        given = bench.start(lease("read line < go"))
        os.mkfifo(bench.work_folder(given) / "go")
        bench.running(given)

    def test_a_command_that_cannot_be_started_fails_with_the_reason(self, bench: Bench) -> None:
        seen = bench.run("", containers=[{"name": "main", "command": ["no-such-program"]}])
        assert only_container(seen) == (128, "StartError")
        assert "'no-such-program' cannot be executed: No such file" in seen.signals.containers[0].message
        assert seen.signals.events[0].type == "Warning"

    def test_a_kill_from_outside_is_a_signal_and_not_memory(self, bench: Bench) -> None:
        seen = bench.run("kill -9 $$$$", memory_bytes=64 * MEBIBYTE)
        assert only_container(seen) == (137, "Error")
        assert seen.exit is not None
        assert seen.exit.killed_by is KilledBy.SIGNAL

    def test_what_a_run_leaves_running_ends_with_it(self, bench: Bench) -> None:
        seen = bench.run("setsid sh -c 'trap \"\" TERM HUP; sleep 8617 & wait' & sleep 0.1")
        assert seen.phase is RunPhase.SUCCEEDED
        assert processes_of(seen.run_id) == []


class TestMemory:
    def test_64mi_are_too_little_for_100mi(self, bench: Bench, rung: str) -> None:
        seen = bench.run(ALLOCATE, memory_bytes=64 * MEBIBYTE)
        assert seen.phase is RunPhase.FAILED
        assert only_container(seen) == (137, "OOMKilled")
        assert seen.exit is not None
        assert (seen.exit.exit_code, seen.exit.killed_by) == (137, KilledBy.MEMORY)
        assert seen.exit.enforced_by is EnforcedBy(rung)
        assert seen.exit.memory_peak_bytes is not None
        assert seen.exit.memory_peak_bytes > 60 * MEBIBYTE

    def test_128mi_are_enough_for_100mi(self, bench: Bench) -> None:
        assert bench.run(ALLOCATE, memory_bytes=128 * MEBIBYTE).phase is RunPhase.SUCCEEDED

    def test_a_shell_that_hides_the_kill_of_its_child_does_not_hide_it(self, bench: Bench) -> None:
        seen = bench.run(f"{ALLOCATE}; exit 0", memory_bytes=64 * MEBIBYTE)
        assert only_container(seen) == (137, "OOMKilled")

    def test_the_rest_of_the_tree_ends_when_one_is_killed_for_memory(self, bench: Bench) -> None:
        seen = bench.run(f"(setsid sh -c '{ALLOCATE}; sleep 8617' &); sleep 8617", memory_bytes=64 * MEBIBYTE)
        assert only_container(seen) == (137, "OOMKilled")
        assert processes_of(seen.run_id) == []

    def test_processes_are_added_up(self, bench: Bench) -> None:
        hold = "dd if=/dev/zero bs=40M count=1 2>/dev/null | (sleep 5; cat >/dev/null)"
        seen = bench.run(f"({hold}) & ({hold}) & wait", memory_bytes=64 * MEBIBYTE)
        assert only_container(seen) == (137, "OOMKilled")

    def test_the_container_over_its_own_limit_is_the_one_named(self, bench: Bench) -> None:
        def container(name: str, script: str, limit: str) -> dict[str, object]:
            resources = {"limits": {"memory": limit}}
            return {"name": name, "command": ["/bin/sh", "-c", script], "resources": resources}

        seen = bench.run(
            "",
            memory_bytes=264 * MEBIBYTE,
            containers=[container("small", "sleep 8617", "200Mi"), container("big", ALLOCATE, "64Mi")],
        )
        assert {each.name: each.reason for each in seen.signals.containers} == {
            "small": "Error",
            "big": "OOMKilled",
        }
        assert seen.exit is not None
        assert seen.exit.exit_code == 137


class TestTime:
    def test_a_deadline_ends_the_run_with_its_reason(self, bench: Bench) -> None:
        seen = bench.run("sleep 8617", activeDeadlineSeconds=0.2)
        assert (seen.phase, seen.signals.reason) == (RunPhase.FAILED, "DeadlineExceeded")
        assert seen.exit is not None
        assert (seen.exit.killed_by, seen.exit.exit_code) == (KilledBy.DEADLINE, 143)

    def test_a_deadline_ends_a_run_that_answers_it_with_success(self, bench: Bench) -> None:
        seen = bench.run("trap 'exit 0' TERM; sleep 8617 & wait", activeDeadlineSeconds=0.2)
        assert (seen.phase, seen.signals.reason) == (RunPhase.FAILED, "DeadlineExceeded")

    def test_after_the_grace_comes_force_for_the_whole_tree(self, bench: Bench) -> None:
        given = bench.start(
            lease("trap '' TERM; (setsid sleep 8617 &); echo ready > ready; while :; do sleep 1; done")
        )
        _await_file(bench, given.pod_name, "ready")
        bench.executor.stop(given.run_id, grace_seconds=0.3)
        seen = bench.end_of(given)
        assert seen.exit is not None
        assert (seen.exit.killed_by, seen.exit.signal) == (KilledBy.STOP, signal.SIGKILL)
        assert processes_of(seen.run_id) == []

    def test_a_grace_is_a_chance_to_finish(self, bench: Bench) -> None:
        given = bench.start(lease("trap 'echo saved; exit 7' TERM; echo > started; sleep 8617 & wait"))
        _await_file(bench, given.pod_name, "started")
        bench.executor.stop(given.run_id, grace_seconds=10)
        seen = bench.end_of(given)
        assert output_of(seen) == b"saved\n"
        assert only_container(seen)[0] == 7
        assert seen.exit is not None
        assert seen.exit.killed_by is KilledBy.STOP

    def test_a_second_stop_shortens_the_grace(self, bench: Bench) -> None:
        given = bench.start(lease("trap '' TERM; echo > ready; while :; do sleep 1; done"))
        _await_file(bench, given.pod_name, "ready")
        bench.executor.stop(given.run_id, grace_seconds=600)
        bench.executor.stop(given.run_id, grace_seconds=0)
        assert bench.end_of(given).phase is RunPhase.FAILED


class TestOutput:
    def test_a_gigabyte_of_output_is_bounded_and_never_blocks(self, bench: Bench) -> None:
        seen = bench.run("echo first; head -c 1000000000 /dev/zero; echo; echo last")
        assert seen.exit is not None
        output = seen.exit.output
        assert output is not None
        assert output.head.startswith(b"first\n")
        assert output.tail.endswith(b"\nlast\n")
        assert (len(output.head), len(output.tail)) == (KEPT_BYTES, KEPT_BYTES)
        assert output.dropped_bytes == 1_000_000_000 + len("first\n\nlast\n") - 2 * KEPT_BYTES

    def test_bytes_that_are_no_text_arrive_as_they_are(self, bench: Bench) -> None:
        seen = bench.run(r"printf '\377\000\033[31m'; exit 1")
        assert output_of(seen) == b"\xff\x00\x1b[31m"
        assert "\0" not in seen.signals.containers[0].message

    def test_a_run_that_closes_its_output_goes_on(self, bench: Bench) -> None:
        given = bench.start(lease("exec >&- 2>&-; sleep 0.1; exit 5"))
        assert only_container(bench.end_of(given)) == (5, "Error")


class TestContainers:
    def test_init_containers_go_first_in_order_and_the_main_ones_together(self, bench: Bench) -> None:
        seen = bench.run(
            "",
            initContainers=[_shell("one", "echo 1 >> said"), _shell("two", "echo 2 >> said")],
            containers=[_shell("left", "mkfifo meet; cat meet"), _shell("right", "until [ -p meet ]; do :; done; cat said > meet")],
        )  # fmt: skip
        assert output_of(seen) == b"1\n2\n"
        assert [each.is_init for each in seen.signals.containers] == [True, True, False, False]

    def test_an_init_container_that_fails_ends_the_run(self, bench: Bench) -> None:
        seen = bench.run(
            "", initContainers=[_shell("init", "exit 9")], containers=[_shell("main", "echo no")]
        )
        assert [(each.name, each.exit_code) for each in seen.signals.containers] == [("init", 9)]
        assert output_of(seen) == b""

    def test_the_first_container_to_fail_decides_the_code(self, bench: Bench) -> None:
        seen = bench.run("", containers=[_shell("slow", "sleep 0.3; exit 4"), _shell("quick", "exit 6")])
        assert seen.exit is not None
        assert seen.exit.exit_code == 6

    def test_arguments_environment_and_folder_are_honoured(self, bench: Bench) -> None:
        main = {
            "name": "main",
            "command": ["/bin/sh", "-c", 'pwd; echo "$GREETING" "$1"', "sh"],
            "args": ["to $(WHO) and $$(WHO)"],
            "env": [{"name": "WHO", "value": "you"}, {"name": "GREETING", "value": "hello $(WHO)"}],
            "workingDir": "/usr",
        }
        assert output_of(bench.run("", containers=[main])) == b"/usr\nhello you to you and $(WHO)\n"


class TestVolumes:
    @pytest.fixture(autouse=True)
    def _where_mounts_can_be_had(self, bench: Bench) -> None:
        if "spec.volumes[].name" not in bench.executor.honours:
            pytest.skip("this user may not make mounts of its own")

    def test_containers_share_a_volume_at_paths_the_machine_does_not_have(self, bench: Bench) -> None:
        def mounting(name: str, script: str, path: str) -> dict[str, object]:
            return _shell(name, script) | {"volumeMounts": [{"name": "shared", "mountPath": path}]}

        seen = bench.run(
            "",
            volumes=[{"name": "shared", "emptyDir": {}}],
            initContainers=[
                mounting("write", "echo hello > /no-such-folder/deep/file", "/no-such-folder/deep")
            ],
            containers=[
                mounting("read", "cat /usr/no-such-folder/file; ls /usr/bin/env; pwd", "/usr/no-such-folder")
            ],
        )
        said = output_of(seen).decode()
        assert said.startswith("hello\n/usr/bin/env\n/")
        assert not Path("/no-such-folder").exists()
        assert not Path("/usr/no-such-folder").exists()

    def test_a_volume_in_memory_counts_against_the_limit(self, bench: Bench, rung: str) -> None:
        if rung == "poll":
            assert "spec.volumes[].emptyDir.medium" not in bench.executor.honours
            return
        script = "head -c 100000000 /dev/zero > /fast/file; exit 0"
        main = _shell("main", script) | {"volumeMounts": [{"name": "fast", "mountPath": "/fast"}]}
        volumes = [{"name": "fast", "emptyDir": {"medium": "Memory"}}]
        seen = bench.run("", volumes=volumes, containers=[main], memory_bytes=64 * MEBIBYTE)
        assert only_container(seen)[1] == "OOMKilled" or b"No space left" in output_of(seen)
        seen = bench.run("", volumes=volumes, containers=[main], memory_bytes=128 * MEBIBYTE)
        assert seen.phase is RunPhase.SUCCEEDED
        assert seen.exit is not None
        assert (seen.exit.memory_peak_bytes or 0) > 95_000_000

    @pytest.mark.parametrize("path", ["/etc/passwd", "/bin/../x", "relative", "/"])
    def test_a_path_that_cannot_be_a_mount_is_an_error_with_its_reason(self, bench: Bench, path: str) -> None:
        main = _shell("main", "echo no") | {"volumeMounts": [{"name": "v", "mountPath": path}]}
        try:
            seen = bench.run("", volumes=[{"name": "v", "emptyDir": {}}], containers=[main])
        except LeaseImpossibleError as error:
            assert "mountPath takes an absolute path" in str(error)  # noqa: PT017
        else:
            assert only_container(seen) == (128, "StartError")
            assert f"The mount path {path} is not a folder" in seen.signals.containers[0].message


class TestIsolation:
    def test_a_job_gets_a_clean_environment_and_no_descriptors(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABASE_URL", "secret")
        said = (
            output_of(bench.run("tr '\\0' '\\n' < /proc/$$$$/environ; ls /proc/$$$$/fd"))
            .decode()
            .splitlines()
        )
        names = {line.partition("=")[0] for line in said if "=" in line}
        assert names == {"HOME", "HOSTNAME", "PATH", "TACK_RUN_ID", "TMPDIR"}
        assert [line for line in said if "=" not in line] == ["0", "1", "2"]

    def test_a_job_cannot_gain_rights_and_leads_a_session_of_its_own(self, bench: Bench) -> None:
        said = output_of(
            bench.run("grep NoNewPrivs /proc/$$$$/status; cut -d' ' -f1,6 /proc/$$$$/stat")
        ).split()
        assert said[:2] == [b"NoNewPrivs:", b"1"]
        assert said[2] == said[3]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give jobs users of their own")
    def test_started_as_root_a_job_is_nobody_and_reads_nothing_of_ours(self, bench: Bench) -> None:
        secret = bench.folder / "agent" / "journal"
        secret.write_text("secret")
        other = bench.start(lease("echo mine > mine; sleep 8617"))
        bench.running(other)
        script = (
            f"id -u; id -G; cat {secret} {bench.work_folder(other)}/mine; ls {bench.folder}/runs/*/run.json; "
            f"for each in $(ls /proc | grep '[0-9]'); do kill -9 $each 2>/dev/null && echo killed $each; done; true"
        )
        # Its own shell is the one process it may kill, and that ends the run.
        seen = bench.run(script)
        said = output_of(seen).decode()
        uid, groups = said.splitlines()[:2]
        assert int(uid) > 60_000
        assert groups == uid
        assert "secret" not in said
        assert "mine\n" not in said.splitlines()
        assert bench.executor.remains(other.pod_name).present
        assert processes_of(other.run_id) != []


class TestRemains:
    def test_a_name_is_taken_until_its_remains_are_removed(self, bench: Bench) -> None:
        first = bench.start(lease("exit 3", job="j1"))
        bench.end_of(first)
        with pytest.raises(NameTakenError, match="armada-j1-0 is taken"):
            bench.start(lease(job="j1"))
        bench.executor.remove(first.pod_name)
        assert not bench.executor.remains(first.pod_name).present
        assert bench.end_of(bench.start(lease(job="j1"))).phase is RunPhase.SUCCEEDED

    def test_removing_a_name_ends_what_runs_under_it(self, bench: Bench) -> None:
        given = bench.start(lease("trap '' TERM; while :; do sleep 8617; done"))
        bench.running(given)
        bench.executor.remove(given.pod_name)
        assert not bench.executor.remains(given.pod_name).present
        assert processes_of(given.run_id) == []

    def test_two_executors_of_one_machine_do_not_meet_in_the_name_of_a_job(
        self, bench: Bench, rung: str
    ) -> None:
        here = bench.start(lease("sleep 8617", job="j1"))
        bench.running(here)
        elsewhere = LocalExecutor(settings(bench.folder / "other", memory_by=rung, name="other"))
        with Bench(elsewhere, bench.folder / "other") as other:
            there = other.start(lease("sleep 8617", job="j1"))
            other.running(there)
            elsewhere.remove(there.pod_name)
            assert other.processes(there) == []
        assert len(bench.processes(here)) == 2

    def test_removing_what_is_not_there_does_no_harm(self, bench: Bench) -> None:
        bench.executor.remove("armada-none-0")

    def test_remains_a_job_has_closed_to_itself_go_too(self, bench: Bench) -> None:
        given = bench.start(lease("mkdir -p a/b; echo > a/b/c; chmod 0 a/b a"))
        bench.end_of(given)
        bench.executor.remove(given.pod_name)
        assert not bench.executor.remains(given.pod_name).present
        while list((bench.folder / "runs").iterdir()):  # what is large may take its time
            bench.executor.observe(timeout=0.01)

    @pytest.mark.parametrize("name", ["../up", "a/b", ".", "", "UPPER", "a\0b"])
    def test_a_name_that_is_no_name_is_refused(self, bench: Bench, name: str) -> None:
        with pytest.raises(LeaseImpossibleError):
            bench.executor.start(replace(lease(), pod_name=name))


def _shell(name: str, script: str) -> dict[str, object]:
    return {"name": name, "command": ["/bin/sh", "-c", script]}


def _await_file(bench: Bench, pod_name: str, name: str) -> None:
    wanted: Path = bench.folder / "runs" / pod_name / "work" / name
    while not wanted.exists():
        bench.executor.observe(timeout=0.01)


def test_its_nodes_are_the_declared_slices_with_what_each_has(folder: Path) -> None:
    taint = TaintDescription(key="gpu", value="only", effect=TaintEffect.NO_SCHEDULE)
    own = Slice(cpu_millicores=250, labels={"zone": "b"}, taints=(taint,), resources={"nvidia.com/gpu": 2})
    executor = LocalExecutor(replace(settings(folder), slices=(Slice(), own)))
    first, second = executor.nodes()
    assert (first.name, first.cpu_millicores, first.taints) == ("local-1", 1_000, ())
    assert (second.cpu_millicores, second.memory_bytes) == (250, 1024 * MEBIBYTE)
    assert second.labels == {"zone": "b", "kubernetes.io/hostname": "local-2"}
    assert (second.taints, second.resources) == ((taint,), {"nvidia.com/gpu": 2})
    executor.close()
