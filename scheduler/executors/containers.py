"""One container of a run while its runner holds it: a process, its output, its end. Standard library only."""

import contextlib
import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Any

from scheduler.executors.capture import Capture, last_lines
from scheduler.executors.spawning import Command, NotStartedError, start

START_ERROR_CODE = 128
KILLED_CODE = 128 + signal.SIGKILL
_PIECE = 256 * 1024
_PIPE = 1024 * 1024


class Container:
    """Started once, ends once."""

    def __init__(self, spec: dict[str, Any], *, uid: int | None) -> None:
        self.name: str = spec["name"]
        self.is_init: bool = spec["init"]
        self.memory_bytes: int = spec["memoryBytes"]
        self.mounts: list[tuple[str, str]] = [(name, path) for name, path in spec["mounts"]]
        """Volumes by name, and the paths they are wanted at."""
        self.group: Path | None = None
        self.root: Path | None = None
        self.hindrance = ""
        """Why it cannot be started, when that is known beforehand."""
        self.pid: int | None = None
        self.output: int | None = None
        """The reading end of what it writes; None before the start and after the end of it."""
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.reason = ""
        self.message = ""
        self.ended_at: float | None = None
        self.over_limit = False
        """It was seen to use more memory than it may."""
        self._spec = spec
        self._uid = uid
        self._capture = Capture()

    @property
    def runs(self) -> bool:
        """It was started and its first process has not ended."""
        return self.pid is not None and self.exit_code is None

    @property
    def writes(self) -> bool:
        """It may still write."""
        return self.output is not None

    def start(self) -> None:
        """Start it; a command that cannot be started ends it at once."""
        self.output, inner = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.output, False)
        with contextlib.suppress(OSError):  # a user may have no more such pipes: then it is a smaller one
            fcntl.fcntl(inner, fcntl.F_SETPIPE_SZ, _PIPE)
        command = Command(
            argv=self._spec["argv"],
            environment=self._spec["environment"],
            folder=self._spec["folder"],
            uid=self._uid,
            group=self.group,
            root=self.root,
        )
        try:
            if self.hindrance:
                raise NotStartedError(self.hindrance)
            self.pid = start(command, inner)
        except NotStartedError as error:
            self.exit_code, self.reason, self.message = START_ERROR_CODE, "StartError", str(error)
            self.ended_at = time.time()
        finally:
            os.close(inner)

    def read(self, run: Capture) -> bool:
        """Take what it has written. False at the end of it, or when there is none now."""
        if self.output is None:
            return False
        try:
            data = os.read(self.output, _PIECE)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        self._capture.write(data)
        run.write(data)
        return True

    def close(self) -> None:
        """Stop reading."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def end(self, status: int) -> None:
        """Record the end of its first process, as `waitpid` tells it."""
        code = os.waitstatus_to_exitcode(status)
        self.signal = -code if code < 0 else None
        self.exit_code = code if code >= 0 else 128 - code
        self.reason = "Error" if self.exit_code else "Completed"
        self.ended_at = time.time()

    def blame_memory(self) -> None:
        """It used more memory than it may: that is its end, whatever its first process made of it."""
        self.exit_code, self.signal, self.reason = KILLED_CODE, int(signal.SIGKILL), "OOMKilled"

    def signal_group(self, number: int) -> None:
        """Signal the first process and what it started in its own process group."""
        if self.runs and self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def as_json(self) -> dict[str, Any]:
        """For `end.json`. The message of a failure is the end of the output, where nothing better is known."""
        failed = bool(self.exit_code)
        return {
            "name": self.name,
            "init": self.is_init,
            "exitCode": self.exit_code,
            "signal": self.signal,
            "reason": self.reason,
            "message": (self.message or last_lines(self._capture)) if failed else "",
            "endedAt": self.ended_at,
        }
