"""The supervisor while Tack starts: what is up already is kept up, what does not start is said."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from lookout.embedded.children import spawn
from lookout.embedded.services import NotReady, wait_for_file
from lookout.embedded.supervisor import Service, Supervisor


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path / "children.json")
    yield made
    made.stop(lambda _: nullcontext())


def service(folder: Path, name: str, script: str) -> Service:
    log = folder / f"{name}.log"

    def start() -> subprocess.Popen[bytes]:
        return spawn(["/bin/sh", "-c", script], log=log, folder=folder)

    return Service(name=name, log=log, start=start, grace_seconds=1)


def test_a_service_that_is_killed_while_another_starts_is_started_again(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    first = service(tmp_path, "first", "mkdir once || touch again; exec sleep 8617")
    child = supervisor.start(first)
    while not (tmp_path / "once").exists():
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    second = service(tmp_path, "second", "until [ -e again ]; do sleep 0.05; done; touch up; exec sleep 8617")
    wait_for_file(
        second,
        supervisor.start(second),
        tmp_path / "up",
        meanwhile=lambda: supervisor.look_after_all_but(second),
    )
    assert (tmp_path / "again").exists()


def test_a_service_that_ends_instead_of_starting_is_not_tried_for_ever(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    broken = service(tmp_path, "broken", "echo no such key; exit 2")
    child = supervisor.start(broken)
    with pytest.raises(NotReady, match=r"broken did not start.*no such key"):
        wait_for_file(
            broken,
            child,
            tmp_path / "up",
            meanwhile=lambda: supervisor.look_after_all_but(broken),
        )
