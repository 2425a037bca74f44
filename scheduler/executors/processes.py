"""Processes as the kernel tells of them: identity across restarts, trees, memory. Standard library only."""

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


def boot_id() -> str:
    """Tells one start of the machine from the next."""
    return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when there is no such process."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on; the name before it may hold anything."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """One process, never mistaken for another that got its number later or after a reboot."""

    pid: int
    ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """The process that has this number now."""
        ticks = start_ticks(pid)
        return None if ticks is None else cls(pid=pid, ticks=ticks, boot=boot_id())

    @classmethod
    def read(cls, path: Path) -> "Identity | None":
        """The process that a runner's claim names; None when it names none."""
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            return cls(pid=int(value["pid"]), ticks=int(value["ticks"]), boot=str(value["boot"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def is_of_another_boot(self) -> bool:
        """The machine was restarted since."""
        return self.boot != boot_id()

    def open(self) -> int | None:
        """A descriptor that turns readable when the process ends; None when it has ended.

        A process that ended and waits for its parent to notice counts as ended.
        """
        if self.is_of_another_boot:
            return None
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return None
        fields = _stat(self.pid)  # read after opening: the descriptor keeps the number from changing hands
        if fields is None or int(fields[19]) != self.ticks or fields[0] in "ZX":
            os.close(descriptor)
            return None
        return descriptor


class Tree:
    """All processes below this one, those included whose parents are gone.

    Needs the caller to be a subreaper: what loses its parent comes up to it. Each member has a top, the child
    of the caller it was first seen under; what came up before it was ever seen is its own top.
    """

    def __init__(self) -> None:
        self._root = os.getpid()
        self._top: dict[int, int] = {}
        self._foreign: set[int] = set()
        self._listing: list[str] = []

    def look(self, *, fresh: bool = False) -> dict[int, int]:
        """Members, zombies included, each with its top.

        Fresh trusts nothing seen before, in case numbers have changed hands: for rare looks, and before a kill.
        """
        listing = os.listdir(PROC)  # noqa: PTH208 (called every 10 ms)
        if listing == self._listing and not fresh:
            return self._top
        self._listing = listing
        here = {int(name) for name in listing if name.isdigit()}
        before = self._top
        self._top = {} if fresh else {pid: top for pid, top in before.items() if pid in here}
        self._foreign = set() if fresh else self._foreign & here
        unknown = here - self._foreign - self._top.keys() - {self._root}
        parents = {pid: int(fields[1]) for pid in unknown if (fields := _stat(pid))}
        for pid in parents:
            self._place(pid, parents, before)
        return self._top

    def _place(self, pid: int, parents: dict[int, int], before: dict[int, int]) -> None:
        chain = [pid]
        while chain[-1] in parents and chain[-1] not in self._top:
            chain.append(parents[chain[-1]])
        end = chain.pop()
        if end == self._root:
            self._top.update({member: before.get(member, chain[-1]) for member in chain})
        elif end in self._top:
            self._top.update({member: before.get(member, self._top[end]) for member in chain})
        elif end == 0 or end in self._foreign:
            self._foreign.update(chain)
        else:  # the parent appeared after the listing was made, or went: the next look tells
            self._listing = []

    def signal(self, number: int, *, top: int | None = None) -> bool:
        """Send a signal to every member, or to those under one top. False when none could hear it."""
        heard = False
        for pid, above in self.look(fresh=True).items():
            fields = _stat(pid)
            if fields is None or fields[0] in "ZX" or top not in (None, above):
                continue
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
                heard = True
        return heard


def memory_of(pid: int) -> tuple[int, int]:
    """Bytes a process has in memory now, and the most it ever had; zeros when it has ended."""
    try:
        status = os.open(f"{PROC}/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0, 0
    try:
        text = os.read(status, 8192)
    except OSError:
        return 0, 0
    finally:
        os.close(status)
    return _kibibytes(text, b"\nVmRSS:"), _kibibytes(text, b"\nVmHWM:")


def _kibibytes(text: bytes, name: bytes) -> int:
    at = text.find(name)
    return int(text[at + len(name) : text.index(b"kB", at)]) * 1024 if at >= 0 else 0


def kill_marked(marker: bytes, *, uid: int | None = None, seconds: float = 5.0) -> bool:
    """Kill every process whose environment began with this entry. False when some outlived the time.

    With a user, also that user's processes which have no such entry at all: a job may clear its environment.
    """
    until = time.monotonic() + seconds
    while True:
        found = _marked(marker, uid)
        if not found:
            return True
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.005)


def _marked(marker: bytes, uid: int | None) -> list[int]:
    name = marker.partition(b"=")[0] + b"="
    found = []
    for pid in os.listdir(PROC):  # noqa: PTH208
        if not pid.isdigit():
            continue
        with contextlib.suppress(OSError):
            entries = (PROC / pid / "environ").read_bytes().split(b"\0")
            if marker in entries or (
                uid is not None and not any(each.startswith(name) for each in entries) and _is_of(pid, uid)
            ):
                found.append(int(pid))
    return found


def _is_of(pid: str, uid: int) -> bool:
    """Whether it is that user's and has not ended: what has ended has no environment either."""
    fields = _stat(int(pid))
    return fields is not None and fields[0] not in "ZX" and (PROC / pid).stat().st_uid == uid
