"""The runner: owns one run's processes, limits and output, and outlives the agent. Standard library only.

The agent keeps one small process that forks a runner per run (`serve`). A runner claims the run's folder,
starts the containers, holds them to memory, deadline and grace, and writes how the run ended to `end.json`
by fsync and rename. An agent that was killed finds all of it again in the folder.

    run.json      what to run, written by the agent
    runner.json   who runs it, made exclusively: a second runner of the same folder gives up
    started.json  the main containers run
    stop.json     the agent asks for the end (then sends SIGTERM to the runner)
    end.json      how it ended
"""

import base64
import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from scheduler.executors.capture import Capture
from scheduler.executors.containers import Container
from scheduler.executors.guards import guard_for
from scheduler.executors.instants import Instant
from scheduler.executors.memory import POLL
from scheduler.executors.processes import Identity
from scheduler.executors.spawning import PR_SET_CHILD_SUBREAPER, prctl
from scheduler.executors.volumes import provide_volumes

SPEC, CLAIM, STARTED, STOP, END, LOG = (
    "run.json",
    "runner.json",
    "started.json",
    "stop.json",
    "end.json",
    "runner.log",
)
MEMORY, DEADLINE, STOPPED, SIGNALLED = "memory", "deadline", "stop", "signal"
_CLEAR_SECONDS = 10.0
_KILL_AGAIN_SECONDS = 0.05
_ALERT_SECONDS = 0.5
_PIECES_AT_ONCE = 16


def write_json(path: Path, value: Any, *, durable: bool = False) -> None:
    """Replace a file as a whole; durable also waits for the disk."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        if durable:
            os.fsync(descriptor)
    scratch.replace(path)
    if durable:
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)


def claim(folder: Path, value: dict[str, Any]) -> bool:
    """Make the claim file of a folder, whole or not at all. False when somebody has made it before."""
    scratch = folder / f".{CLAIM}.{os.getpid()}"
    write_json(scratch, value)
    try:
        os.link(scratch, folder / CLAIM)
    except FileExistsError:
        return False
    finally:
        scratch.unlink()
    return True


class Run:
    """One run, from its first process to its end record."""

    def __init__(self, folder: Path, spec: dict[str, Any]) -> None:
        self._folder = folder
        self._spec = spec
        self._containers = [Container(each, uid=spec["uid"]) for each in spec["containers"]]
        group = Path(spec["group"]) if spec["group"] else None
        self._guard = guard_for(spec["enforcedBy"], group, self._containers, spec["memoryBytes"])
        self._capture = Capture()
        self._began = time.monotonic()
        self._killed_by = ""
        self._over_limit = False
        self._kill_at: float | None = None
        self._alert_until = 0.0
        self._looked_at = 0.0
        self._warnings: list[str] = []
        self._woken, self._wake = _wakeup_pipe()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        for descriptor, events in self._guard.descriptors():
            self._poll.register(descriptor, events)

    def live(self) -> None:
        """Init containers one after the other, then the main ones together; then write the end."""
        if any(each.mounts for each in self._containers):
            provide_volumes(self._folder, self._spec, self._containers)
        stages = [[each] for each in self._containers if each.is_init]
        stages.append([each for each in self._containers if not each.is_init])
        for stage in stages:
            for container in stage:
                self._start(container)
            if stage is stages[-1]:
                write_json(self._folder / STARTED, Instant.now().as_json())
                self._ring()
            while any(container.runs for container in stage):
                self._attend()
            self._clear_away(stage)
            if self._killed_by or any(container.exit_code for container in stage):
                break
        self._write_end()

    def _start(self, container: Container) -> None:
        container.start()
        if container.output is not None:
            self._poll.register(container.output, select.POLLIN)

    def _attend(self) -> None:
        """Wait for the next thing to happen and see to it."""
        for descriptor, _ in self._poll.poll(self._patience()):
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            else:
                self._take_output(descriptor)
        if self._is_time_for_memory():
            self._look_after_memory()
        self._reap()
        self._look_at_clock()

    def _take_output(self, descriptor: int) -> None:
        for container in self._containers:
            if container.output == descriptor:
                for _ in range(_PIECES_AT_ONCE):
                    if not container.read(self._capture):
                        break
                if not container.writes:
                    self._poll.unregister(descriptor)
                return
        self._alert_until = time.monotonic() + _ALERT_SECONDS
        with contextlib.suppress(OSError):  # an eventfd has no position
            os.lseek(descriptor, 0, os.SEEK_SET)
        with contextlib.suppress(BlockingIOError):
            os.read(descriptor, 4096)  # silences the memory bell

    def _patience(self) -> float:
        """Milliseconds until something must be looked at without being told."""
        if _terminate:  # asked before the wake-up pipe was there
            return 0.0
        now = time.monotonic()
        waits = [3600.0]
        if self._guard.interval is not None:
            waits.append(self._guard.interval)
        if now < self._alert_until:  # the bell rings before the kill is counted
            waits.append(0.002)
        if self._kill_at is not None:
            waits.append(self._kill_at - now)
        elif self._deadline is not None:
            waits.append(self._deadline - now)
        return max(0.0, min(waits)) * 1000 + 0.5

    @property
    def _deadline(self) -> float | None:
        seconds = self._spec["deadlineSeconds"]
        return None if seconds is None else self._began + float(seconds)

    def _reap(self) -> bool:
        """Take note of ended processes. False when no process is left at all: the runner adopts every orphan."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            for container in self._containers:
                if container.pid == pid and container.runs:
                    container.end(status)
                    self._look_after_memory()
                    if any(each.runs for each in self._containers):  # else all that is left is cleared away
                        self._guard.kill(container)

    def _is_time_for_memory(self) -> bool:
        """Output comes more often than a look at memory is worth."""
        now = time.monotonic()
        every = self._guard.interval or 0.0
        return now < self._alert_until or now - self._looked_at >= every

    def _look_after_memory(self) -> None:
        self._looked_at = time.monotonic()
        over = self._guard.over_limit()
        for container in over:
            container.over_limit = True
        if over and not self._over_limit:
            self._over_limit = True
            self._killed_by = self._killed_by or MEMORY
            self._kill_at = time.monotonic()

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline and not self._killed_by:
            self._begin_end(DEADLINE, float(self._spec["graceSeconds"]))
        if _heard_terminate() and self._killed_by in ("", STOPPED):
            self._begin_end(STOPPED, self._asked_grace())
        if self._kill_at is not None and now >= self._kill_at:
            self._guard.kill()
            self._kill_at = now + _KILL_AGAIN_SECONDS

    def _begin_end(self, killed_by: str, grace_seconds: float) -> None:
        """Ask politely; force follows when the grace is over. A second call can only shorten the grace."""
        until = time.monotonic() + grace_seconds
        self._kill_at = until if self._kill_at is None else min(self._kill_at, until)
        if not self._killed_by:
            self._killed_by = killed_by
            for container in self._containers:
                container.signal_group(signal.SIGTERM)

    def _asked_grace(self) -> float:
        default = float(self._spec["graceSeconds"])
        try:
            asked = json.loads((self._folder / STOP).read_text(encoding="utf-8"))["graceSeconds"]
        except (OSError, ValueError, KeyError):
            return default
        return default if asked is None else float(asked)

    def _clear_away(self, stage: list[Container]) -> None:
        """End what the containers of a stage left running, and take the rest of their output."""
        until = time.monotonic() + _CLEAR_SECONDS
        while self._reap():
            self._guard.kill()
            if time.monotonic() > until:
                self._warnings.append("Some processes of the run did not end when killed.")
                break
            self._poll.poll(2)
        for container in stage:
            if container.output is not None:
                self._poll.unregister(container.output)
                while container.read(self._capture):
                    pass
                container.close()

    def _write_end(self) -> None:
        self._settle_memory()
        record = {
            "runId": self._spec["runId"],
            "endedAt": Instant.now().as_json(),
            "killedBy": self._killed_by or self._outside_kill(),
            "memoryPeakBytes": self._guard.peak_bytes(),
            "enforcedBy": self._spec["enforcedBy"],
            "warnings": self._warnings,
            "containers": [each.as_json() for each in self._containers if each.exit_code is not None],
            "output": {
                "head": base64.b64encode(self._capture.head).decode("ascii"),
                "tail": base64.b64encode(self._capture.tail).decode("ascii"),
                "droppedBytes": self._capture.dropped_bytes,
            },
        }
        write_json(self._folder / END, record, durable=True)

    def _settle_memory(self) -> None:
        """Memory is why it ended, except where the poller saw too much and the run had ended well by itself."""
        self._look_after_memory()
        over = [each for each in self._containers if each.over_limit]
        main = [each for each in self._containers if not each.is_init]
        if over and self._spec["enforcedBy"] == POLL and all(each.exit_code == 0 for each in main):
            self._killed_by = "" if self._killed_by == MEMORY else self._killed_by
            self._warnings.append(
                f"The run ended well although it used {self._guard.peak_bytes()} bytes of memory, more than its limit; "
                "a kernel that holds limits would have ended it."
            )
            return
        for container in over:
            container.blame_memory()

    def _outside_kill(self) -> str:
        return SIGNALLED if any(each.signal for each in self._containers) else ""

    def _ring(self) -> None:
        """Tell the agent, if there is one, that something changed. It looks for itself."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.settimeout(0)
            path = Path(self._spec["bell"])
            folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:  # through the folder's descriptor: a socket's path may not be longer than 107 bytes
                bell.sendto(self._spec["runId"].encode(), f"/proc/self/fd/{folder}/{path.name}")
            finally:
                os.close(folder)


_terminate: list[int] = []


def _heard_terminate() -> bool:
    heard = bool(_terminate)
    _terminate.clear()
    return heard


def _wakeup_pipe() -> tuple[int, int]:
    """A descriptor that turns readable when a child ends or somebody asks for the end; and its writing end."""
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken, wake


def run_folder(folder: Path) -> None:
    """Be the runner of a folder: claim it, run it, write its end. Gives up when another has claimed it."""
    signal.signal(signal.SIGTERM, lambda *_: _terminate.append(1))
    spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    identity = Identity.of(os.getpid())
    assert identity is not None
    mine = {"runId": spec["runId"], "pid": identity.pid, "ticks": identity.ticks, "boot": identity.boot}
    if claim(folder, mine):
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        Run(folder, spec).live()


def serve(channel: socket.socket) -> None:
    """Fork a runner for each folder named on the channel, answer with its process number; end with the channel."""
    gc.freeze()  # collecting would copy the memory that runners share with this process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # runners are nobody's business but the agent's
    while asked := channel.recv(65_536):
        pid = os.fork()
        if pid == 0:
            channel.close()
            _be_runner(Path(asked.decode()))
        channel.send(str(pid).encode())


def _be_runner(folder: Path) -> None:
    code = 1
    try:
        os.setsid()
        log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        run_folder(folder)
        code = 0
    except BaseException:  # noqa: BLE001 (a child of the server must not go on as the server)
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Entry of the server: the channel is the descriptor named by the first argument."""
    serve(socket.socket(fileno=int(sys.argv[1])))
