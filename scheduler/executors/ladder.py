"""Which rung of the memory ladder this machine offers: probed by making a group, once, at the start."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scheduler.executors.memory import AUTO, CGROUP1, CGROUP2, PARENT_NAME, POLL, groups_of

PROBE_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """The rung taken, and why the better ones were not."""

    name: str
    parent: Path | None = None
    """The group that holds the groups of runs; None for the poller."""
    notes: tuple[str, ...] = ()


class RungMissingError(Exception):
    """The rung that was asked for cannot be had; the text says why and what to do."""


def probe(
    wanted: str = AUTO, *, mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")
) -> Rung:
    """The best rung, or the one wanted. Raises RungMissingError when that one is not to be had."""
    reasons: list[str] = []
    for name in (CGROUP2, CGROUP1):
        if wanted not in (AUTO, name):
            continue
        try:
            return Rung(name=name, parent=_usable_parent(name, mounts, own), notes=tuple(reasons))
        except _UnusableError as error:
            reasons.append(str(error))
    if wanted not in (AUTO, POLL):
        why = " ".join(reasons) or f"there is no rung '{wanted}': say auto, cgroup2, cgroup1 or poll."
        raise RungMissingError(f"Memory limits cannot be held by {wanted}: {why}")
    note = "Memory is watched by polling: a spike shorter than 10 ms is missed, memory files are not counted."
    return Rung(name=POLL, notes=(*reasons, note))


class _UnusableError(Exception):
    pass


def _usable_parent(name: str, mounts: Path, own: Path) -> Path:
    tried: list[str] = []
    for candidate in _candidates(name, mounts, own):
        parent = candidate / PARENT_NAME
        try:
            _try_out(name, parent)
        except OSError as error:
            tried.append(f"{parent}: {error.strerror or error}")
        else:
            return parent
    if not tried:
        raise _UnusableError(f"{name} has no memory controller here.")
    raise _UnusableError(f"{name} cannot be written ({'; '.join(tried)}).")


def _try_out(name: str, parent: Path) -> None:
    groups = groups_of(name)
    if groups is None:
        return
    groups.hold(parent)
    trial = parent / f"probe-{os.getpid()}"
    try:
        groups.create(trial, limit_bytes=PROBE_LIMIT)
        # Being allowed to make groups is not being allowed to move processes into them.
        if not os.access(trial / "cgroup.procs", os.W_OK) or not os.access(parent / "cgroup.procs", os.W_OK):
            raise PermissionError(13, "processes may not be moved there")
    finally:
        with contextlib.suppress(OSError):
            trial.rmdir()


def _candidates(name: str, mounts: Path, own: Path) -> Iterator[Path]:
    """Where a group might be made: our own group first, so that limits set on us hold for jobs too."""
    mount = _mount_of(name, mounts)
    if mount is None:
        return
    mount_root, mount_point = mount
    group = _own_group(name, own)
    inside = mount_point / os.path.relpath(group, mount_root) if group is not None else mount_point
    if name == CGROUP1:
        yield from dict.fromkeys(path for path in (inside, mount_point) if path.is_dir())
        return
    # In version 2 a group with processes in it cannot hold groups with limits: the first above that can.
    for above in (inside, *inside.parents):
        if "memory" in _words(above / "cgroup.subtree_control"):
            yield above
            return
        if above == mount_point:
            return


def _mount_of(name: str, mounts: Path) -> tuple[str, Path] | None:
    for line in _lines(mounts):
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        version1 = kind[0] == "cgroup" and "memory" in kind[-1].split(",")
        if (name == CGROUP1 and version1) or (name == CGROUP2 and kind[0] == "cgroup2"):
            return fields[3], Path(fields[4])
    return None


def _own_group(name: str, own: Path) -> str | None:
    for line in _lines(own):
        number, controllers, path = line.split(":", 2)
        if (name == CGROUP2 and number == "0") or (name == CGROUP1 and "memory" in controllers.split(",")):
            return path
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()
