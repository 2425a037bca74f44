"""Hold runs to their memory limits: a ladder of cgroup v2, cgroup v1 and, last, a poller. Standard library only.

A rung is chosen once, when an executor starts. Control groups count what a whole tree of processes uses,
files in memory included, and the kernel ends what goes over. The poller (see `runner`) adds up what the
processes hold every few milliseconds and can miss what happens between two looks.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

CGROUP2 = "cgroup2"
CGROUP1 = "cgroup1"
POLL = "poll"
AUTO = "auto"

PARENT_NAME = "tack"
"""The group that holds the groups of all runs."""


class Groups(Protocol):
    """Control groups of one version. A group is a folder; it goes when it is empty."""

    def hold(self, group: Path) -> None:
        """Make a group that holds others with limits, unless it is there."""

    def create(self, group: Path, *, limit_bytes: int) -> None:
        """Make a group with a limit (0 for none). FileExistsError when the name is taken."""

    def divide(self, group: Path, names: list[str], limits: list[int]) -> list[Path]:
        """Make one group per name inside this one."""

    def oom_kills(self, group: Path) -> int:
        """How many processes of the group the kernel ended for memory."""

    def peak_bytes(self, group: Path) -> int | None:
        """The most the group ever used; None where the kernel does not tell."""

    def watch(self, group: Path) -> int | None:
        """A descriptor that tells when the group ran out of memory, or None; `watch_events` says how."""

    @property
    def watch_is_priority(self) -> bool:
        """Whether that descriptor tells by priority data rather than by turning readable."""

    def kill(self, group: Path) -> None:
        """Send SIGKILL to all there is in the group, once."""


class CgroupV2:
    """Groups of the unified hierarchy."""

    watch_is_priority = True

    def hold(self, group: Path) -> None:
        group.mkdir(exist_ok=True)
        _write(group / "cgroup.subtree_control", "+memory")

    def create(self, group: Path, *, limit_bytes: int) -> None:
        group.mkdir()
        if limit_bytes:
            _write(group / "memory.max", limit_bytes)
            _write_if_there(group / "memory.swap.max", 0)
            _write_if_there(group / "memory.oom.group", 1)

    def divide(self, group: Path, names: list[str], limits: list[int]) -> list[Path]:
        self.hold(group)
        return _divided(self, group, names, limits)

    def oom_kills(self, group: Path) -> int:
        return _counter(group / "memory.events", "oom_kill")

    def peak_bytes(self, group: Path) -> int | None:
        return _number(group / "memory.peak")

    def watch(self, group: Path) -> int | None:
        try:
            return os.open(group / "memory.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None

    def kill(self, group: Path) -> None:
        if not _write_if_there(group / "cgroup.kill", 1):
            _kill_each(group)


class CgroupV1:
    """Groups of the memory controller of its own."""

    watch_is_priority = False

    def hold(self, group: Path) -> None:
        group.mkdir(exist_ok=True)
        # The groups inside count too; no choice on newer kernels.
        _write_if_there(group / "memory.use_hierarchy", 1)

    def create(self, group: Path, *, limit_bytes: int) -> None:
        group.mkdir()
        _write_if_there(group / "memory.use_hierarchy", 1)
        if limit_bytes:
            _write(group / "memory.limit_in_bytes", limit_bytes)
            _write_if_there(group / "memory.memsw.limit_in_bytes", limit_bytes)

    def divide(self, group: Path, names: list[str], limits: list[int]) -> list[Path]:
        return _divided(self, group, names, limits)

    def oom_kills(self, group: Path) -> int:
        return _counter(group / "memory.oom_control", "oom_kill")

    def peak_bytes(self, group: Path) -> int | None:
        return _number(group / "memory.max_usage_in_bytes")

    def watch(self, group: Path) -> int | None:
        bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with (group / "memory.oom_control").open("rb") as control:
                _write(group / "cgroup.event_control", f"{bell} {control.fileno()}")
        except OSError:
            os.close(bell)
            return None
        return bell

    def kill(self, group: Path) -> None:
        _kill_each(group)


def groups_of(rung: str) -> Groups | None:
    """How to handle the groups of a rung; None for the poller, which has none."""
    if rung == CGROUP2:
        return CgroupV2()
    return CgroupV1() if rung == CGROUP1 else None


def pids_in(group: Path) -> set[int]:
    """Processes in the group and in the groups inside it."""
    found: set[int] = set()
    for listed in _and_below(group):
        with contextlib.suppress(OSError):
            found.update(int(line) for line in (listed / "cgroup.procs").read_text(encoding="ascii").split())
    return found


def remove_group(groups: Groups, group: Path, *, seconds: float = 1.0) -> bool:
    """Kill what is left in a group and remove it. False when some process would not go in that time.

    A group that does not exist counts as removed.
    """
    until = time.monotonic() + seconds
    while group.exists():
        if pids_in(group):
            groups.kill(group)
        for each in reversed(list(_and_below(group))):
            with contextlib.suppress(OSError):
                each.rmdir()
        if not group.exists():
            break
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def _and_below(group: Path) -> Iterator[Path]:
    if group.is_dir():
        yield group
        for below in sorted(group.iterdir()):
            if below.is_dir():
                yield from _and_below(below)


def _divided(groups: Groups, group: Path, names: list[str], limits: list[int]) -> list[Path]:
    made = [group / name for name in names]
    for each, limit in zip(made, limits, strict=True):
        groups.create(each, limit_bytes=limit)
    return made


def _kill_each(group: Path) -> None:
    for pid in pids_in(group):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _write(path: Path, value: int | str) -> None:
    with path.open("w", encoding="ascii") as file:  # "w" truncates, which these files ignore
        file.write(str(value))


def _write_if_there(path: Path, value: int | str) -> bool:
    try:
        _write(path, value)
    except OSError:
        return False
    return True


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _counter(path: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0
