"""What is left of a local run: a folder and a control group of one name, made exclusively, removed by name."""

import contextlib
import json
import os
import shutil
import stat
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scheduler.executors.ladder import Rung
from scheduler.executors.memory import Groups, groups_of, remove_group
from scheduler.executors.processes import kill_marked
from scheduler.executors.protocol import NameTakenError
from scheduler.executors.runner import SPEC
from scheduler.executors.users import NOBODY

WORK, SCRATCH = "work", "tmp"
MARKER = "TACK_RUN_ID"
"""Each process of a run has it in its environment, so that those of a dead runner are found."""
_GOING = ".removing-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where one run happens."""

    folder: Path
    group: Path | None


class RemainsOnDisk:
    """The remains of all runs of an executor."""

    def __init__(self, runs_folder: Path, rung: Rung, *, executor: str) -> None:
        self._runs = runs_folder
        self._rung = rung
        # Executors of one machine may run the same job one after the other, and must not meet in its name.
        self._own_group = rung.parent / f"executor-{quote(executor, safe='')}" if rung.parent else None
        for left in self._runs.glob(f"{_GOING}*"):
            _delete_soon(left)

    def folder(self, pod_name: str) -> Path:
        """Where the run of that name has its folder, made or not."""
        return self._runs / pod_name

    def create(
        self, pod_name: str, *, limit_bytes: int, uid: int | None, belongings: Iterable[str] = ()
    ) -> Place:
        """Make both, or none; belongings are further folders that are the job's own. Raises NameTakenError when either exists, OSError when it cannot be done."""
        folder = self.folder(pod_name)
        group = self._group(pod_name)
        if group is not None and group.exists():
            raise NameTakenError(_taken(pod_name))
        try:
            folder.mkdir(mode=0o711 if uid is not None else 0o700)
        except FileExistsError:
            raise NameTakenError(_taken(pod_name)) from None
        try:
            self._make_group(group, limit_bytes)
            for name in (WORK, SCRATCH, *belongings):
                (folder / name).mkdir(mode=0o700)
                if uid is not None:
                    os.chown(folder / name, uid, uid)
        except OSError as error:
            self.remove(pod_name)
            if isinstance(error, FileExistsError):
                raise NameTakenError(_taken(pod_name)) from None
            raise
        return Place(folder=folder, group=group)

    def present(self, pod_name: str) -> bool:
        """Whether either is there."""
        group = self._group(pod_name)
        return self.folder(pod_name).exists() or (group is not None and group.exists())

    def release_group(self, pod_name: str) -> None:
        """An ended run needs no control group any more; its folder holds the name. What will not go now goes later."""
        for groups, group in self._groups_to_remove(pod_name, read_spec(self.folder(pod_name))):
            remove_group(groups, group, seconds=0.0)

    def end_processes(self, pod_name: str) -> None:
        """End what a run has left running whose runner is gone."""
        if (spec := read_spec(self.folder(pod_name))) is not None:
            _end_processes(spec)

    def remove(self, pod_name: str) -> bool:
        """End what still runs and free the name. False when something would not go. Twice does no harm."""
        folder = self.folder(pod_name)
        spec = read_spec(folder)
        if not all(remove_group(groups, group) for groups, group in self._groups_to_remove(pod_name, spec)):
            return False
        if spec is not None and not spec.get("group") and not _end_processes(spec):
            return False
        with contextlib.suppress(FileNotFoundError):
            going = folder.with_name(f"{_GOING}{pod_name}-{uuid.uuid4().hex}")
            folder.rename(going)
            _delete_soon(going)
        return True

    def specs(self) -> list[dict[str, Any]]:
        """What every folder's run was to be, where that can be read."""
        return [spec for folder in sorted(self._runs.iterdir()) if (spec := read_spec(folder)) is not None]

    def _make_group(self, group: Path | None, limit_bytes: int) -> None:
        groups = groups_of(self._rung.name)
        if groups is not None and group is not None:
            groups.hold(group.parent)
            groups.create(group, limit_bytes=limit_bytes)

    def _groups_to_remove(self, pod_name: str, spec: dict[str, Any] | None) -> list[tuple[Groups, Path]]:
        """The group of that name here, and the one the run was given, perhaps on another rung or elsewhere."""
        found = [(groups_of(self._rung.name), self._group(pod_name))]
        if spec is not None and spec.get("group"):
            found.append((groups_of(spec["enforcedBy"]), Path(spec["group"])))
        return [(groups, group) for groups, group in found if groups is not None and group is not None]

    def _group(self, pod_name: str) -> Path | None:
        return self._own_group / pod_name if self._own_group is not None else None


def read_spec(folder: Path) -> dict[str, Any] | None:
    """What the folder's run was to be; None when nobody wrote it, or not to its end."""
    try:
        spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return spec if isinstance(spec, dict) else None


def _end_processes(spec: dict[str, Any]) -> bool:
    uid = spec["uid"] if spec["uid"] != NOBODY else None
    return kill_marked(f"{MARKER}={spec['runId']}".encode(), uid=uid)


def _taken(pod_name: str) -> str:
    return f"The name {pod_name} is taken by the remains of an earlier run; they are being removed."


def _delete_soon(folder: Path) -> None:
    """The name is free already; a large tree may take its time."""
    threading.Thread(target=_delete, args=(folder,), daemon=True, name="remains").start()


def _delete(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError:
        _open_up(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _open_up(folder: Path) -> None:
    """A job may have closed folders of its own, to us as well where it is the same user."""
    with contextlib.suppress(OSError):
        folder.chmod(stat.S_IRWXU)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _open_up(Path(entry.path))
