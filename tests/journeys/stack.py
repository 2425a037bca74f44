"""A whole Tack for a journey, its processes in reach: to be stopped, frozen, killed."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lookout.client import Client, JobDetail


@dataclass(frozen=True, kw_only=True, slots=True)
class Processes:
    """The processes of one Tack, found by the folder that its environment or command line names."""

    var: Path

    def of(self, words: str) -> list[int]:
        """Process ids whose command line holds the words, oldest first."""
        return sorted(
            int(folder.name)
            for folder in Path("/proc").iterdir()
            if folder.name.isdigit() and words in _command(folder) and self._is_ours(folder)
        )

    def _is_ours(self, folder: Path) -> bool:
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:
            return False
        return str(self.var) in _command(folder) or f"TACK_VAR={self.var}" in environment

    def kill(self, words: str) -> None:
        """SIGKILL every process of that command line."""
        for pid in self.of(words):
            os.kill(pid, signal.SIGKILL)

    @contextmanager
    def frozen(self, words: str) -> Iterator[None]:
        """Stop them for a while, as a machine does that swaps itself to death."""
        pids = self.of(words)
        assert pids, f"no process runs {words}"
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def _command(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def until(holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait until it holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.05)


def ended(client: Client, job_id: str) -> JobDetail:
    """The job once it has ended."""
    until(lambda: client.job(job_id).ended_at is not None)
    return client.job(job_id)
