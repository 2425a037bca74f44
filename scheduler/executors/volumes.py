"""The volumes of one run, provided by its runner. Standard library only."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler.executors.containers import Container
from scheduler.executors.mounts import enter_namespace, make_root, mount_memory


def volume_folder(folder: Path, name: str) -> Path:
    """Where a volume's files lie, in the folder of the run."""
    return folder / f"volume-{name}"


def provide_volumes(folder: Path, spec: Mapping[str, Any], containers: Sequence[Container]) -> None:
    """Give each container that mounts something a root in which it finds that. What fails keeps it from starting."""
    try:
        enter_namespace()
        for volume in spec["volumes"]:
            if volume["memory"]:
                at = volume_folder(folder, volume["name"])
                mount_memory(at, size_bytes=spec["memoryBytes"], uid=spec["uid"])
    except OSError as error:
        for container in containers:
            container.hindrance = f"the run's volumes cannot be had: {error.strerror or error}"
        return
    for index, container in enumerate(containers):
        if container.mounts:
            _provide(container, folder, folder / f"root-{index}")


def _provide(container: Container, folder: Path, root: Path) -> None:
    try:
        root.mkdir(mode=0o755)
        make_root(root, [(volume_folder(folder, name), path) for name, path in container.mounts])
    except OSError as error:
        container.hindrance = f"its volumes cannot be mounted: {error.strerror or error}"
    else:
        container.root = root
