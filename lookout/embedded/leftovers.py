"""Processes of an earlier `tack up` that was killed: known by pid and time of birth, ended before a new start.

On Linux the kernel ends them when their parent is gone, so there is only a moment to wait; elsewhere they live on.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from lookout.embedded.files import write_private

_PATIENCE_SECONDS = 6.0
_FORCE_SECONDS = 4.0


def remember(file: Path, pids: Mapping[str, int]) -> None:
    """Write down who runs now, for the start after a killed one."""
    known = {name: [pid, birth] for name, pid in pids.items() if (birth := birth_of(pid))}
    write_private(file, json.dumps(known))


def end_leftovers(file: Path) -> list[str]:
    """End what `file` remembers and still lives; its names. Harmless without such a file."""
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        return []
    living = {name: pid for name, (pid, birth) in known.items() if birth_of(pid) == birth}
    for number, patience in (
        (None, _PATIENCE_SECONDS / 2),
        (signal.SIGTERM, _PATIENCE_SECONDS),
        (signal.SIGKILL, _FORCE_SECONDS),
    ):
        for pid in living.values():
            _signal(pid, number)
        if _gone({pid: known[name][1] for name, pid in living.items()}, seconds=patience):
            break
    file.unlink(missing_ok=True)
    return list(living)


def birth_of(pid: int) -> str:
    """When a process began, in words that no later process with the same number can share; empty when it is gone."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] in "ZX":
            return ""
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{fields[19]}"
    if Path("/proc/self/stat").exists():
        return ""
    asked = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()


def _signal(pid: int, number: signal.Signals | None) -> None:
    if number is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if number is signal.SIGKILL:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _gone(births: Mapping[int, str], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(birth_of(pid) == birth for pid, birth in births.items()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
