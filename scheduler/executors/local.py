"""The local executor: runs are process trees on this machine, nodes are declared slices of it."""

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scheduler.executors import mounts, runner
from scheduler.executors.endings import lost, recorded_end
from scheduler.executors.ladder import probe
from scheduler.executors.memory import AUTO, POLL
from scheduler.executors.podspec import (
    HONOURS,
    MEMORY_VOLUME_HONOURS,
    PATH,
    VOLUME_HONOURS,
    commands,
    deadline_seconds,
    grace_seconds,
    volumes,
)
from scheduler.executors.processes import Identity, boot_id
from scheduler.executors.protocol import (
    EnforcedBy,
    FoundRun,
    Lease,
    LeaseImpossibleError,
    LeaseRefusedError,
    NodeDescription,
    Observation,
    Remains,
    RunPhase,
)
from scheduler.executors.remains import MARKER, SCRATCH, WORK, Place, RemainsOnDisk, read_spec
from scheduler.executors.slices import Slice
from scheduler.executors.users import JobUsers
from scheduler.executors.volumes import volume_folder
from scheduler.executors.zygote import Zygote

BELL = "bell"
BOOT = "boot"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NO_MOUNTS = "Volumes cannot be had here: this user may not make mounts of its own."
_RUNNER_GONE = "The process that held this run was ended from outside, so how the run ended is not known."
_REBOOTED = "The machine was restarted while the run was at work."


class LocalExecutorError(Exception):
    """The local executor cannot work here; the text says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSettings:
    """What a local executor is told."""

    name: str
    slices: Sequence[Slice]
    """What nodes to declare, named NAME-1, NAME-2 …"""
    cpu_millicores: int
    """Of each node that does not say."""
    memory_bytes: int
    """Of each node that does not say."""
    node_id_label: str
    folder: Path
    """The agent's own; jobs cannot read it."""
    runs_folder: Path
    """Where the folders of runs are made; when started as root it must be reachable for other users."""
    memory_by: str = AUTO
    """`auto` for the best rung of the ladder, or the rung to insist on."""


@dataclass(kw_only=True, slots=True)
class _LiveRun:
    run_id: str
    pod_name: str
    folder: Path
    pidfd: int | None
    started: bool = False


class LocalExecutor:
    """Starts runners, hears of their ends within a millisecond, finds them again after a restart."""

    def __init__(self, settings: LocalSettings) -> None:
        if sys.platform != "linux":
            raise LocalExecutorError("The local executor needs Linux. Run the agent on a Linux machine.")
        self._settings = settings
        self._rung = probe(settings.memory_by)
        self._users = JobUsers()
        self._was_rebooted = _note_boot(settings.folder / BOOT)
        settings.runs_folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        self._check_reachable(settings.runs_folder.resolve())
        self._remains = RemainsOnDisk(settings.runs_folder.resolve(), self._rung, executor=settings.name)
        self._has_mounts = _can_mount()
        self._zygote = Zygote()
        self._zygote.warm_up()
        self._live: dict[str, _LiveRun] = {}
        self._news: deque[Observation] = deque()
        self._selector = selectors.DefaultSelector()
        self._bell = self._hang_bell()
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._woken, selectors.EVENT_READ)

    @property
    def honours(self) -> Sequence[str]:
        """Paths of the pod spec it acts on."""
        if not self._has_mounts:
            return HONOURS
        return (*HONOURS, *VOLUME_HONOURS, *(() if self._rung.name == POLL else MEMORY_VOLUME_HONOURS))

    def nodes(self) -> Sequence[NodeDescription]:
        """The declared slices."""
        slices = enumerate(self._settings.slices, start=1)
        return [self._node(f"{self._settings.name}-{number}", each) for number, each in slices]

    def start(self, lease: Lease) -> None:
        """Start a run; returns as soon as it has a runner. Raises LeaseRefusedError, LeaseImpossibleError."""
        if not _NAME.fullmatch(lease.pod_name):
            raise LeaseImpossibleError(f"{lease.pod_name!r} cannot be the name of a folder.")
        uid = self._users.lend(lease.run_id)
        try:
            spec = self._spec(lease, uid)
            place = self._remains.create(
                lease.pod_name,
                limit_bytes=lease.memory_bytes,
                uid=uid,
                belongings=[volume_folder(Path(), each["name"]).name for each in volumes(lease.pod_spec)],
            )
            spec["group"] = str(place.group) if place.group is not None else None
            self._launch(lease, place, spec)
        except (OSError, LeaseRefusedError, LeaseImpossibleError) as error:
            self._users.give_back(lease.run_id)
            if not isinstance(error, OSError):
                raise
            raise LeaseRefusedError(f"The run could not be started here: {error}") from error

    def found(self) -> Sequence[FoundRun]:
        """Runs of this executor that have a folder."""
        return [
            FoundRun(run_id=spec["runId"], node=spec["node"], pod_name=spec["podName"])
            for spec in self._remains.specs()
            if spec.get("executor") == self._settings.name
        ]

    def adopt(self, *, run_id: str, pod_name: str) -> bool:
        """Take up a run of an agent before this one, or its end. False: nothing of it was ever started."""
        folder = self._remains.folder(pod_name)
        spec = read_spec(folder)
        if spec is None or spec.get("runId") != run_id:
            return self._went_with_the_machine(run_id, folder)
        if runner.claim(folder, {"runId": run_id, "pid": 0, "ticks": 0, "boot": ""}):
            self._remains.remove(pod_name)  # no runner had begun, and now none can
            return False
        self._users.keep(run_id, spec["uid"])
        identity = _claimed_by(folder)
        pidfd = identity.open() if identity is not None else None
        self._attend(_LiveRun(run_id=run_id, pod_name=pod_name, folder=folder, pidfd=pidfd))
        return True

    def _went_with_the_machine(self, run_id: str, folder: Path) -> bool:
        """Where folders of runs lie in memory, a restart of the machine takes them along with the runs."""
        if self._was_rebooted and not folder.exists():
            self._news.append(lost(run_id, _REBOOTED))
            return True
        return False

    def observe(self, *, timeout: float) -> Sequence[Observation]:
        """News of runs; waits for some until `wake` or for so many seconds."""
        ready = self._selector.select(0.0 if self._news else timeout)
        for key, _ in ready:
            if key.fd == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._woken)
            elif key.data is None:
                self._answer_bell()
            else:
                self._ended(key.data)
        news, self._news = self._news, deque()
        return list(news)

    def wake(self) -> None:
        """Make `observe` return. Safe from any thread and from signal handlers."""
        os.eventfd_write(self._woken, 1)

    def stop(self, run_id: str, *, grace_seconds: float | None) -> None:
        """Ask a run to end. A run that has ended, or never was, is no error."""
        live = self._live.get(run_id)
        if live is None or live.pidfd is None:
            return
        runner.write_json(live.folder / runner.STOP, {"graceSeconds": grace_seconds})
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(live.pidfd, signal.SIGTERM)

    def remove(self, pod_name: str) -> None:
        """Remove folder and control group of that name, and end what runs in them."""
        for live in [each for each in self._live.values() if each.pod_name == pod_name]:
            self._let_go(live)
        self._remains.remove(pod_name)

    def remains(self, pod_name: str) -> Remains:
        """Whether folder or control group is there. Their removal leaves no mark to tell its age by."""
        return Remains(present=bool(pod_name) and self._remains.present(pod_name))

    def close(self) -> None:
        """Let go of everything; runs go on."""
        self._zygote.close()
        for live in list(self._live.values()):
            self._let_go(live)
        self._selector.close()
        self._bell.close()
        os.close(self._woken)

    def _launch(self, lease: Lease, place: Place, spec: dict[str, object]) -> None:
        try:
            runner.write_json(place.folder / runner.SPEC, spec)
            pid = self._zygote.launch(place.folder)
        except OSError:
            self._remains.remove(lease.pod_name)
            raise
        pidfd = None
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            pidfd = os.pidfd_open(pid)
        live = _LiveRun(run_id=lease.run_id, pod_name=lease.pod_name, folder=place.folder, pidfd=pidfd)
        self._attend(live)

    def _attend(self, live: _LiveRun) -> None:
        self._live[live.run_id] = live
        if live.pidfd is not None:
            self._selector.register(live.pidfd, selectors.EVENT_READ, live)
        self._look_whether_started(live)
        if live.pidfd is None:
            self._ended(live)

    def _look_whether_started(self, live: _LiveRun) -> None:
        if not live.started and (live.folder / runner.STARTED).exists():
            live.started = True
            self._news.append(Observation(run_id=live.run_id, phase=RunPhase.RUNNING))

    def _answer_bell(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                live = self._live.get(self._bell.recv(256).decode("ascii", errors="replace"))
                if live is not None:
                    self._look_whether_started(live)

    def _ended(self, live: _LiveRun) -> None:
        self._look_whether_started(live)
        self._let_go(live)
        with contextlib.suppress(OSError):  # its user's number will be another run's
            live.folder.chmod(0o700)
        end = recorded_end(live.folder)
        if end is None:
            self._remains.end_processes(live.pod_name)
            identity = _claimed_by(live.folder)
            rebooted = identity is not None and identity.is_of_another_boot
            end = lost(live.run_id, _REBOOTED if rebooted else _RUNNER_GONE)
        self._remains.release_group(live.pod_name)
        self._news.append(end)

    def _let_go(self, live: _LiveRun) -> None:
        self._live.pop(live.run_id, None)
        self._users.give_back(live.run_id)
        if live.pidfd is not None:
            self._selector.unregister(live.pidfd)
            os.close(live.pidfd)
            live.pidfd = None

    def _spec(self, lease: Lease, uid: int | None) -> dict[str, object]:
        folder = self._remains.folder(lease.pod_name)
        surroundings = {
            MARKER: lease.run_id,
            "PATH": PATH,
            "HOME": str(folder / WORK),
            "TMPDIR": str(folder / SCRATCH),
            "HOSTNAME": lease.pod_name,
        }
        return {
            "runId": lease.run_id,
            "podName": lease.pod_name,
            "node": lease.node,
            "executor": self._settings.name,
            "uid": uid,
            "enforcedBy": self._rung.name,
            "memoryBytes": lease.memory_bytes,
            "graceSeconds": grace_seconds(lease.pod_spec),
            "deadlineSeconds": deadline_seconds(lease.pod_spec),
            "bell": str(self._settings.folder.resolve() / BELL),
            "volumes": volumes(lease.pod_spec),
            "containers": commands(lease.pod_spec, surroundings=surroundings, folder=folder / WORK),
        }

    def _hang_bell(self) -> socket.socket:
        bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bell.setblocking(False)  # noqa: FBT003 (its only argument)
        (self._settings.folder / BELL).unlink(missing_ok=True)
        folder = os.open(self._settings.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:  # through the folder's descriptor: a socket's path may not be longer than 107 bytes
            bell.bind(f"/proc/self/fd/{folder}/{BELL}")
        finally:
            os.close(folder)
        self._selector.register(bell, selectors.EVENT_READ)
        return bell

    def _node(self, name: str, declared: Slice) -> NodeDescription:
        return NodeDescription(
            name=name,
            labels={**declared.labels, self._settings.node_id_label: name},
            cpu_millicores=declared.cpu_millicores or self._settings.cpu_millicores,
            memory_bytes=declared.memory_bytes or self._settings.memory_bytes,
            resources=declared.resources,
            taints=declared.taints,
            memory_enforced_by=EnforcedBy(self._rung.name),
            notes=(
                "Images are ignored: commands run with the programs of this machine.",
                self._users.note,
                *(() if self._has_mounts else (_NO_MOUNTS,)),
                *self._rung.notes,
            ),
        )

    def _check_reachable(self, folder: Path) -> None:
        for each in (folder, *folder.parents):
            if os.geteuid() == 0 and not each.stat().st_mode & 0o001:
                raise LocalExecutorError(
                    f"Jobs run as users of their own and cannot enter {each}. Choose another folder for runs, or "
                    f"allow it: chmod o+x {each}"
                )


@cache
def _can_mount() -> bool:
    """Whether a process started here can give itself mounts; tried in one, with an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-I", "-S", mounts.__file__, folder]
        tried = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    return tried.returncode == 0


def _note_boot(file: Path) -> bool:
    """Keep which start of the machine this is; whether it is another than the last one kept."""
    before = file.read_text(encoding="ascii") if file.exists() else boot_id()
    file.write_text(boot_id(), encoding="ascii")
    return before != boot_id()


def _claimed_by(folder: Path) -> Identity | None:
    return Identity.read(folder / runner.CLAIM)
