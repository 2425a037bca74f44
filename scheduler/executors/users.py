"""Who jobs run as: when Tack was started as root, a user number that nobody else has."""

import contextlib
import os
import pwd
import time
import zlib
from pathlib import Path

_FIRST, _LAST = 61_184, 65_519
"""Numbers that systems keep for users made on the fly."""
NOBODY = 65_534
_LOOK_SECONDS = 0.1


class JobUsers:
    """Hands out user numbers to runs. As an ordinary user there is nothing to hand out: jobs are that user."""

    def __init__(self) -> None:
        self._lent: dict[str, int] = {}
        self._seen: set[int] = set()
        self._seen_at = 0.0
        self._is_root = os.geteuid() == 0
        self._taken = {entry.pw_uid for entry in pwd.getpwall()} if self._is_root else set()
        self._pool = [uid for uid in _pool() if uid not in self._taken] if self._is_root else []

    @property
    def note(self) -> str:
        """A sentence for the node's page."""
        if not self._is_root:
            return "Jobs run as the user who started Tack and can read and change whatever this user can."
        if not self._pool:
            return "Jobs run as the user nobody and can reach each other's processes."
        return "Each run has a user number of its own and can read neither Tack's files nor other runs'."

    def lend(self, run_id: str) -> int | None:
        """The user for a run; the same when asked again. None: the user who asks."""
        if not self._is_root:
            return None
        if run_id not in self._lent:
            self._lent[run_id] = self._free(run_id)
        return self._lent[run_id]

    def keep(self, run_id: str, uid: int | None) -> None:
        """Note the user of a run that an earlier agent started."""
        if uid is not None:
            self._lent[run_id] = uid

    def give_back(self, run_id: str) -> None:
        """The run is over."""
        with contextlib.suppress(KeyError):
            del self._lent[run_id]

    def _at_work(self) -> set[int]:
        if time.monotonic() - self._seen_at > _LOOK_SECONDS:
            self._seen, self._seen_at = _owners(), time.monotonic()
        return self._seen

    def _free(self, run_id: str) -> int:
        # Another agent on this machine lends from the same numbers: whose processes are there is whose number it is.
        # Each run begins its search elsewhere, so that two that are lent in the same moment rarely meet.
        lent = set(self._lent.values()) | self._at_work()
        start = zlib.crc32(run_id.encode())
        for step in range(len(self._pool)):
            uid = self._pool[(start + step) % len(self._pool)]
            if uid not in lent:
                return uid
        return NOBODY


def _owners() -> set[int]:
    """Users that have a process now."""
    found = set()
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                found.add(entry.stat().st_uid)
    return found


def _pool() -> range:
    """The numbers that exist here: a container may know fewer."""
    known = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
            inside, _, count = (int(word) for word in line.split())
            if inside <= _FIRST:
                known = max(known, inside + count)
    return range(_FIRST, min(_LAST + 1, known))
