"""The memory ladder, as far as files in a temporary folder can stand for control groups."""

from pathlib import Path

import pytest

from scheduler.executors.ladder import RungMissingError, probe
from scheduler.executors.memory import CgroupV1, CgroupV2, groups_of, pids_in


def version2(folder: Path, *, delegated: str = "memory") -> tuple[Path, Path]:
    """Files that look like version 2 with our own group two levels down; what /proc would say of it."""
    root = folder / "cgroup"
    own = root / "user.slice" / "shell.scope"
    own.mkdir(parents=True)
    (root / "cgroup.subtree_control").write_text("memory cpu")
    (root / "user.slice" / "cgroup.subtree_control").write_text(delegated)
    (own / "cgroup.subtree_control").write_text("")
    mounts, membership = folder / "mountinfo", folder / "membership"
    mounts.write_text(f"30 23 0:26 / {root} rw,nosuid - cgroup2 cgroup2 rw\n")
    membership.write_text("0::/user.slice/shell.scope\n")
    return mounts, membership


def test_without_any_control_group_the_poller_is_taken_and_says_what_it_misses(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    rung = probe("auto", mounts=tmp_path / "none", own=tmp_path / "none")
    assert (rung.name, rung.parent) == ("poll", None)
    assert "cgroup2 has no memory controller here." in rung.notes
    assert "polling" in rung.notes[-1]


def test_a_rung_asked_for_and_missing_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    with pytest.raises(
        RungMissingError, match="cannot be held by cgroup1: cgroup1 has no memory controller here"
    ):
        probe("cgroup1", mounts=tmp_path / "none", own=tmp_path / "none")


def test_version_2_groups_are_made_beside_our_own_where_the_controller_is_handed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, own = version2(tmp_path)
    # The kernel fills a new group with files and frees it of them; a folder does neither.
    monkeypatch.setattr(CgroupV2, "create", lambda self, group, *, limit_bytes: _filled(group))
    monkeypatch.setattr(Path, "rmdir", lambda self: None)
    (tmp_path / "cgroup" / "user.slice" / "tack").mkdir()
    (tmp_path / "cgroup" / "user.slice" / "tack" / "cgroup.procs").touch()
    rung = probe("auto", mounts=mounts, own=own)
    assert (rung.name, rung.parent) == ("cgroup2", tmp_path / "cgroup" / "user.slice" / "tack")


def test_version_2_without_the_controller_is_no_rung(tmp_path: Path) -> None:
    mounts, own = version2(tmp_path, delegated="")
    (tmp_path / "cgroup" / "cgroup.subtree_control").write_text("cpu")
    with pytest.raises(RungMissingError):
        probe("cgroup2", mounts=mounts, own=own)


def test_limits_and_counters_of_version_2_are_in_its_files(tmp_path: Path) -> None:
    group = tmp_path / "run"
    CgroupV2().create(group, limit_bytes=64)
    assert (group / "memory.max").read_text() == "64"
    assert (group / "memory.swap.max").read_text() == "0"
    assert (group / "memory.oom.group").read_text() == "1"
    (group / "memory.events").write_text("low 0\noom 1\noom_kill 2\noom_group_kill 1\n")
    (group / "memory.peak").write_text("4096\n")
    assert (CgroupV2().oom_kills(group), CgroupV2().peak_bytes(group)) == (2, 4096)
    CgroupV2().kill(group)
    assert (group / "cgroup.kill").read_text() == "1"


def test_limits_and_counters_of_version_1_are_in_its_files(tmp_path: Path) -> None:
    group = tmp_path / "run"
    CgroupV1().create(group, limit_bytes=64)
    assert (group / "memory.limit_in_bytes").read_text() == "64"
    assert (group / "memory.memsw.limit_in_bytes").read_text() == "64"
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    (group / "memory.max_usage_in_bytes").write_text("8192\n")
    assert (CgroupV1().oom_kills(group), CgroupV1().peak_bytes(group)) == (3, 8192)


def test_counters_that_are_not_there_count_nothing(tmp_path: Path) -> None:
    for groups in (CgroupV1(), CgroupV2()):
        assert groups.oom_kills(tmp_path) == 0
        assert groups.peak_bytes(tmp_path) is None


def test_processes_are_found_in_groups_inside_groups(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "cgroup.procs").write_text("1\n2\n")
    (tmp_path / "inside" / "cgroup.procs").write_text("3\n")
    assert pids_in(tmp_path) == {1, 2, 3}
    assert pids_in(tmp_path / "not-there") == set()


def test_the_poller_has_no_groups() -> None:
    assert groups_of("poll") is None


def _filled(group: Path) -> None:
    group.mkdir(exist_ok=True)
    (group / "cgroup.procs").touch()
