"""`tack up --check`: the stories on a Tack of its own, verified from outside: command line, REST, events, pages."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from lookout.client import Client, TackError
from lookout.story import disk, lost_agent
from lookout.story.command_line import CHECKOUT, CommandFailed, CommandLine
from lookout.story.expecting import CheckFailed, equal, expect, step
from lookout.story.narrating import Narrator, StoryBroke
from lookout.story.second_agent import NoSecondAgent, second_agent
from lookout.story.telling import Teller
from lookout.story.verifying import verify_disk_story, verify_lost_agent_story, verify_memory_story

START_SECONDS = 120.0
STOP_SECONDS = 60.0
FIRST_CONFIGURATION = CHECKOUT / "lookout" / "embedded" / "tack.yaml"
_EXECUTOR_TIMEOUT, _HEARTBEAT = "5s", "1s"
_LINES_OF_A_LOG = 25
_NOT_OURS = (
    "DATABASE_URL",
    "BROKER_URL",
    "TACK_CONFIG",
    "TACK_URL",
    "TACK_TOKEN",
    "TACK_SECRET_KEY",
    "TACK_PORT",
)


def check(*, keep: bool) -> int:
    """Play and verify the stories; a line per step. The exit code: 0 when all of it held.

    The scratch folder is removed, unless `keep` says otherwise or something failed.
    """
    scratch = Path(tempfile.mkdtemp(prefix="tack-check-"))
    # Others may pass through: started by root, the database can run as another user, and so do jobs.
    scratch.chmod(0o711)
    started = time.monotonic()
    try:
        _play(scratch)
    except (
        CheckFailed,
        StoryBroke,
        NoSecondAgent,
        CommandFailed,
        TackError,
        httpx.HTTPError,
        OSError,
        subprocess.SubprocessError,
    ) as error:
        _show_logs(scratch)
        print(f"not ok  {error}\nLogs and data are in {scratch}.", flush=True)
        return 1
    except KeyboardInterrupt:
        print("stopped")
        return 1
    if keep:
        print(f"The scratch folder is {scratch}.")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"The stories hold: {time.monotonic() - started:.1f} s.", flush=True)
    return 0


def _play(scratch: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    environment["TACK_VAR"] = str(scratch / "var")
    _write_configuration(scratch / "var")
    with _running(scratch, environment) as up:
        with step("Tack starts on a scratch folder, with an executor of two nodes"):
            client = _wait_for_the_start(up, scratch)
        with client:
            tack = CommandLine(environment=environment)
            narrator = Narrator(tack=tack, client=client, say=lambda _: None)
            _play_memory_story(narrator)
            _play_disk_story(narrator)
            _play_lost_agent_story(narrator, environment)
        with step("Ctrl-C stops everything, in order, with exit code 0"):
            _stop(up)


def _write_configuration(var: Path) -> None:
    """The configuration that `tack up` writes, with less patience for silent executors."""
    text = FIRST_CONFIGURATION.read_text()
    impatient = text.replace("executorTimeout: 60s", f"executorTimeout: {_EXECUTOR_TIMEOUT}")
    expect(impatient != text, "The file that `tack up` writes says no executorTimeout.")
    var.mkdir(mode=0o700)
    (var / "tack.yaml").write_text(f"{impatient}\ntask:\n  jobLeaseRenewalInterval: {_HEARTBEAT}\n")


def _play_memory_story(narrator: Narrator) -> None:
    teller = Teller(narrator)
    with step("the command line makes the policy and the queue"):
        teller.make_policy_and_queue()
    with step("the command line submits a job of 64Mi that writes 100Mi"):
        job_set, job_id = teller.submit()
    with step("the job runs out of memory, is tried again with 128Mi and succeeds"):
        job = teller.follow(job_set, job_id)
    verify_memory_story(narrator.client, tack=narrator.tack, job=job)


def _play_disk_story(narrator: Narrator) -> None:
    with step("a job with a bad disk on one node is moved to the other, and fails when both were tried"):
        job = disk.tell(narrator)
    verify_disk_story(narrator.client, job)


def _play_lost_agent_story(narrator: Narrator, environment: Mapping[str, str]) -> None:
    with (
        step(
            "an agent is killed: its lease expires, the job runs elsewhere, the old run is stopped on its return"
        ),
        second_agent(narrator.client.url, environment) as agent,
    ):
        job = lost_agent.tell(narrator, agent)
    lost_agent.clear_up(narrator)
    verify_lost_agent_story(narrator.client, job)


@contextmanager
def _running(scratch: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    printed = scratch / "up.log"
    printed.touch(mode=0o600)  # it holds a sign-in link
    with printed.open("wb") as log:
        up = subprocess.Popen(
            [sys.executable, "-P", "-m", "lookout.embedded", "--no-story", "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**environment, "PYTHONPATH": str(CHECKOUT)},
            start_new_session=True,
        )
    try:
        yield up
    finally:
        with suppress(subprocess.TimeoutExpired):
            up.send_signal(signal.SIGINT)
            up.wait(STOP_SECONDS)
        if up.poll() is None:
            up.kill()
            up.wait()


def _wait_for_the_start(up: subprocess.Popen[bytes], scratch: Path) -> Client:
    token_file = scratch / "var" / "token"

    def started() -> Client | None:
        expect(
            up.poll() is None, f"`tack up` ended: {(scratch / 'up.log').read_text(errors='replace')[-2000:]}"
        )
        if not token_file.exists():
            return None
        client = Client.from_environment(token_file=token_file)
        with suppress(TackError):
            if any(len(executor.nodes) == 2 for executor in client.executors()):
                return client
        client.close()
        return None

    return _eventually(started, seconds=START_SECONDS, otherwise="No executor with two nodes was heard of")


def _stop(up: subprocess.Popen[bytes]) -> None:
    up.send_signal(signal.SIGINT)
    try:
        code = up.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(f"It has not stopped within {STOP_SECONDS:.0f} s.") from error
    equal("exit code", code, 0)


def _show_logs(scratch: Path) -> None:
    for log in sorted((scratch / "var" / "log").glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-_LINES_OF_A_LOG:]
        print("\n".join([f"-- the end of {log.name}", *lines]), flush=True)


def _eventually[T](look: Callable[[], T | None], *, seconds: float, otherwise: str) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)
    raise CheckFailed(f"{otherwise} within {seconds:.0f} s.")
