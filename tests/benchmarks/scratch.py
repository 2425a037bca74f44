"""A whole Tack in a scratch folder, beside any other that runs: started as `tack up`, gone at the end."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lookout.client import Client, TackError
from lookout.embedded.children import spawn

CHECKOUT = Path(__file__).resolve().parents[2]
START_SECONDS, STOP_SECONDS = 120.0, 60.0
_OURS = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "USER")


class DidNotStart(RuntimeError):
    """Tack did not start; what it said last follows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scratch:
    """A scratch Tack: how it is spoken to, and what lies behind it."""

    client: Client
    """As admin."""
    var: Path
    """Its folder."""

    @property
    def url(self) -> str:
        return self._kept("url")

    @property
    def database_url(self) -> str:
        return self._kept("database.url")

    @property
    def broker_url(self) -> str:
        return self._kept("broker.url")

    def _kept(self, name: str) -> str:
        return (self.var / name).read_text().strip()


@contextmanager
def scratch_tack() -> Iterator[Client]:
    """A client, as admin, of a Tack of two local nodes that has just started."""
    with scratch() as tack:
        yield tack.client


@contextmanager
def scratch(environment: Mapping[str, str] | None = None) -> Iterator[Scratch]:
    """A Tack of two local nodes that has just started, with more in its environment, such as `TACK__…` keys."""
    with tempfile.TemporaryDirectory(prefix="tack-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        inherited = {key: value for key, value in os.environ.items() if key in _OURS}
        command = [sys.executable, "-P", "-m", "lookout.embedded", "--no-story", "--port", "0"]
        ours = {"PYTHONPATH": str(CHECKOUT), "TACK_VAR": str(folder / "var")}
        # A measurement that is killed leaves nothing behind that would disturb the next one.
        up = spawn(
            command,
            log=folder / "log",
            env={**inherited, **(environment or {}), **ours},
            at_our_death=signal.SIGINT,
        )
        try:
            with _started(up, folder) as client:
                yield Scratch(client=client, var=folder / "var")
        finally:
            _stop(up)


def _started(up: subprocess.Popen[bytes], folder: Path) -> Client:
    deadline = time.monotonic() + START_SECONDS
    while up.poll() is None and time.monotonic() < deadline:
        if (folder / "var" / "token").exists():
            client = Client.from_environment(token_file=folder / "var" / "token")
            with suppress(TackError):
                if any(executor.nodes for executor in client.executors()):
                    return client
            client.close()
        time.sleep(0.1)
    raise DidNotStart(f"Tack did not start. {(folder / 'log').read_text(errors='replace')[-2_000:]}")


def _stop(up: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        up.send_signal(signal.SIGINT)
        up.wait(STOP_SECONDS)
    if up.poll() is None:
        up.kill()
        up.wait()
