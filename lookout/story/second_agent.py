"""A second agent beside Tack's own: executor `demo` with one small node, which a story starts, kills and removes.

The node is tainted: no job goes there but the story's, which tolerates it. Nobody else's is lost with the agent.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lookout.embedded.children import run, spawn
from lookout.story.command_line import CHECKOUT

NAME = "demo"
_OWNER = "agent"
"""The person whose token it shows; `tack up` has made it."""
TAINT = {"key": "story", "value": "lost-agent", "effect": "NoSchedule"}
"""Of its node; `lost-agent-job.yaml` tolerates it."""
ONE_NODE = {"TACK__LOCAL__NODES": json.dumps([{"cpu": "200m", "memory": "256Mi", "taints": [TAINT]}])}
"""What it is told besides the configuration of the Tack it joins."""
_START_SECONDS = 6.0
_STOP_SECONDS = (1.0, 6.0)


class NoSecondAgent(RuntimeError):
    """It cannot be had here; the sentence says why."""


class SecondAgent:
    """Its process, its folders, and what it has of runs."""

    def __init__(self, *, url: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._runs = folder / "runs"
        self._ready = folder / "ready"
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            *(sys.executable, "-P", "-m", "scheduler.agent", "--url", url, "--name", NAME),
            *("--token-file", str(folder / "token"), "--config", str(_configuration(environment))),
            *("--folder", str(folder / "agent"), "--runs-folder", str(self._runs)),
        ]

    @property
    def file(self) -> Path:
        """A place for a file that jobs of any user can see."""
        return self._folder / "go-on"

    def start(self) -> None:
        """Start it, or start it again: it finds the runs it had."""
        self._ready.unlink(missing_ok=True)
        self._process = spawn(
            self._command,
            log=self._folder / "agent.log",
            env={
                **self._environment,
                **ONE_NODE,
                "PYTHONPATH": str(CHECKOUT),
                "TACK_READY_FILE": str(self._ready),
            },
            at_our_death=signal.SIGKILL,
        )

    def kill(self) -> None:
        """End it as a machine ends that loses its network: it says nothing, and its jobs go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def has(self, job_id: str) -> bool:
        """Whether anything of a run of the job is left with it."""
        return (self._runs / f"armada-{job_id}-0").exists()

    def remove(self) -> None:
        """End it and what it runs. A killed one is started once more, to clear up."""
        self.file.touch()
        if self._process is None:
            return
        if self._process.poll() is not None and self._runs.exists() and any(self._runs.iterdir()):
            self.start()
            self._wait_until_ready()
        for seconds in _STOP_SECONDS:  # asked a second time it leaves its runs no grace
            with suppress(subprocess.TimeoutExpired):
                self._process.terminate()
                self._process.wait(seconds)
        self.kill()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._ready.exists() and time.monotonic() < deadline:
            time.sleep(0.05)


@contextmanager
def second_agent(url: str, environment: Mapping[str, str] | None = None) -> Iterator[SecondAgent]:
    """A second agent of the Tack that runs here, not started yet; gone at the end. Raises NoSecondAgent."""
    environment = os.environ if environment is None else environment
    kept = _var(environment) / "url"
    if not kept.exists() or kept.read_text().strip() != url:
        raise NoSecondAgent(
            f"{url} was not started from this checkout, so no second agent can join it from here."
        )
    folder = Path(tempfile.mkdtemp(prefix="tack-demo-agent-"))
    folder.chmod(0o755)  # jobs are other users
    agent = SecondAgent(url=url, folder=folder, environment=environment)
    try:
        _write_token(folder / "token", environment)
        yield agent
    finally:
        agent.remove()
        shutil.rmtree(folder, ignore_errors=True)


def _write_token(file: Path, environment: Mapping[str, str]) -> None:
    """A token of its own, good for this executor and for a day."""
    words = (
        "token",
        "create",
        _OWNER,
        "--executor",
        NAME,
        "--days",
        "1",
        "--note",
        "the story's second agent",
    )
    command = [sys.executable, "-P", str(CHECKOUT / "manage.py"), *words]
    done = run(command, env={**environment, "PYTHONPATH": str(CHECKOUT)})
    if done.returncode != 0:
        raise NoSecondAgent(f"It cannot have a token: {done.stderr.strip().splitlines()[-1:]}")
    file.touch(mode=0o600)
    file.write_text(done.stdout.strip())


def _var(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("TACK_VAR") or CHECKOUT / "var")


def _configuration(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("TACK_CONFIG") or _var(environment) / "tack.yaml")
