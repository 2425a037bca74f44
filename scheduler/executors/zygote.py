"""The small process that forks runners: a start in milliseconds, and no runner carries the agent's memory."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

_START_SECONDS = 10.0
_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from scheduler.executors.runner import main; main()"


class Zygote:
    """Started with the first run, replaced when it dies. Its runners outlive it, and the agent."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def launch(self, folder: Path) -> int:
        """Have a runner started for a folder; the number of its process. Raises OSError."""
        try:
            return self._ask(folder)
        except OSError:
            self.close()
            return self._ask(folder)

    def warm_up(self) -> None:
        """Start it before it is needed."""
        if self._channel is None:
            self._start()

    def close(self) -> None:
        """Let it end. Runners go on."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2.0)
            self._process = None

    def _ask(self, folder: Path) -> int:
        self.warm_up()
        if self._channel is None:
            raise OSError("The process that starts runners is gone.")
        self._channel.sendall(os.fsencode(folder))
        answer = self._channel.recv(64)
        if not answer:
            raise ConnectionResetError("The process that starts runners ended.")
        return int(answer)

    def _start(self) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.settimeout(_START_SECONDS)
        root = Path(__file__).resolve().parents[2]
        # Where a private copy of Python finds its library; a job gets none of the runner's environment.
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _CODE, str(root), str(theirs.fileno())],
                env=kept,
                cwd="/",
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # the terminal's Ctrl-C is not for runners
            )
        self._channel = mine
