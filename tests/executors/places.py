"""A local executor in the test's own process, and short ways to run things on it."""

import json
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scheduler.executors.local import LocalExecutor, LocalSettings
from scheduler.executors.protocol import Lease, Observation, RunPhase
from scheduler.executors.slices import Slice
from tests.executors.agents import processes_of

MEBIBYTE = 1024 * 1024
PATIENCE = 20.0


def settings(folder: Path, *, memory_by: str = "auto", name: str = "local") -> LocalSettings:
    """Of an executor whose folders lie in this one."""
    folder.mkdir(exist_ok=True, mode=0o755)
    (folder / "agent").mkdir(exist_ok=True, mode=0o700)
    return LocalSettings(
        name=name,
        slices=(Slice(), Slice()),
        cpu_millicores=1000,
        memory_bytes=1024 * MEBIBYTE,
        node_id_label="kubernetes.io/hostname",
        folder=folder / "agent",
        runs_folder=folder / "runs",
        memory_by=memory_by,
    )


def lease(script: str = "true", *, job: str = "", memory_bytes: int = 0, **spec: Any) -> Lease:
    """A lease of `/bin/sh -c SCRIPT`, or of the containers that the spec names."""
    job = job or uuid.uuid4().hex
    containers = [{"name": "main", "command": ["/bin/sh", "-c", script]}]
    return Lease(
        run_id=str(uuid.uuid4()),
        job_id=job,
        job_set_id="set",
        queue="queue",
        namespace="default",
        owner="alice",
        number=1,
        node="local-1",
        pod_name=f"armada-{job}-0",
        pod_spec={"containers": containers, **spec},
        memory_bytes=memory_bytes,
    )


class Bench:
    """Starts runs, waits for what becomes of them, removes all of them at the end."""

    def __init__(self, executor: LocalExecutor, folder: Path) -> None:
        self.executor = executor
        self.folder = folder
        self._seen: list[Observation] = []
        self._names: set[str] = set()

    def start(self, given: Lease) -> Lease:
        self._names.add(given.pod_name)
        self.executor.start(given)
        return given

    def run(self, script: str, *, memory_bytes: int = 0, **spec: Any) -> Observation:
        """Start a run and wait for its end."""
        return self.end_of(self.start(lease(script, memory_bytes=memory_bytes, **spec)))

    def end_of(self, given: Lease) -> Observation:
        return self.seen(given, *(phase for phase in RunPhase if phase.is_end))

    def running(self, given: Lease) -> Observation:
        return self.seen(given, RunPhase.RUNNING)

    def seen(self, given: Lease, *phases: RunPhase) -> Observation:
        """The first observation of a run in one of these phases, waited for."""
        until = time.monotonic() + PATIENCE
        while True:
            for each in self._seen:
                if each.run_id == given.run_id and each.phase in phases:
                    return each
            seen = [each.phase for each in self._seen if each.run_id == given.run_id]
            assert time.monotonic() < until, f"not within {PATIENCE} s: {phases}; seen: {seen}"
            self._seen += self.executor.observe(timeout=1.0)

    def processes(self, given: Lease) -> list[int]:
        return processes_of(given.run_id)

    def uid(self, given: Lease) -> int:
        """The user of a run that was started as root."""
        return int(json.loads((self.folder / "runs" / given.pod_name / "run.json").read_text())["uid"])

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds, and see what runs do meanwhile."""
        until = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < until, f"not within {PATIENCE} s"
            self._seen += self.executor.observe(timeout=0.01)

    def work_folder(self, given: Lease) -> Path:
        return self.folder / "runs" / given.pod_name / "work"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._names:
            self.executor.remove(name)
        self.executor.close()


def only_container(seen: Observation) -> tuple[int, str]:
    (container,) = seen.signals.containers
    return container.exit_code, container.reason


def output_of(seen: Observation) -> bytes:
    """What a run wrote, where nothing was dropped."""
    assert seen.exit is not None
    assert seen.exit.output is not None
    assert seen.exit.output.dropped_bytes == 0
    return seen.exit.output.head + seen.exit.output.tail
