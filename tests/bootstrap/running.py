"""A real `tack up` on a folder of its own, seen from outside: what it prints, its processes, its REST API."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lookout.client import Client
from lookout.embedded.leftovers import birth_of

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 90.0
_numbers = itertools.count(1)
_NOT_OURS = ("DATABASE_URL", "BROKER_URL", "TACK_CONFIG", "TACK_URL", "TACK_TOKEN", "TACK_PORT", "TACK_VAR")


class Up:
    """One `tack up --no-story`. Its data stay in `var` when it ends."""

    def __init__(self, var: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.var = var
        self._printed = var.parent / f"{var.name}.{next(_numbers)}.up"
        kept = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        with self._printed.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "lookout.embedded",
                    "--no-story",
                    *(arguments or ("--port", "0")),
                ],
                env={**kept, "PYTHONPATH": str(CHECKOUT), "TACK_VAR": str(var), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        """What a person at the terminal has seen so far."""
        return self._printed.read_text(errors="replace")

    def wait_until_started(self) -> "Up":
        """Wait for the sign that it serves."""
        eventually(
            lambda: "Stop with Ctrl-C" in self.printed or self.process.poll() is not None, self._what_it_said
        )
        assert self.process.poll() is None, self._what_it_said()
        return self

    def client(self) -> Client:
        """A client with the token that it wrote."""
        return Client.from_environment(token_file=self.var / "token")

    def pid_of(self, service: str) -> int:
        """The process of a service, as it is now."""
        return int(json.loads((self.var / "run" / "children.json").read_text())[service][0])

    def processes(self) -> dict[int, str]:
        """Every process below it, with the moment of its birth."""
        found: dict[int, str] = {}
        below = [self.process.pid]
        while below:
            parent = below.pop()
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                children = [int(pid) for pid in task.read_text().split()]
                below += children
                found |= {pid: birth for pid in children if (birth := birth_of(pid))}
        return found

    def stop(self) -> int:
        """Press Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_SECONDS)

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        return self.process.wait(PATIENCE_SECONDS)

    def _what_it_said(self) -> str:
        logs = [
            f"-- {log.name}\n{log.read_text(errors='replace')[-1500:]}"
            for log in (self.var / "log").glob("*.log")
        ]
        return "\n".join([self.printed, *logs])


@contextmanager
def running(var: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Up]:
    """A started one that is stopped at the end, whatever happened."""
    up = Up(var, *arguments, environment=environment)
    try:
        yield up.wait_until_started()
    finally:
        if up.process.poll() is None:
            up.stop()


def eventually(
    holds: Callable[[], object], otherwise: Callable[[], str] = lambda: "It never came true."
) -> None:
    """Wait until something seen from outside is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.05)
