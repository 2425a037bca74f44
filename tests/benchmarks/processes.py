"""What the processes of a Tack cost: seconds of CPU and bytes of memory, as the kernel counts them (Linux)."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def services(var: Path) -> dict[str, int]:
    """Name → pid of what `tack up` started."""
    known = json.loads((var / "run" / "children.json").read_text())
    return {name: int(pid) for name, (pid, _) in known.items()}


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """CPU used so far by each process and everything below it."""
    below = _children()
    return {name: _cpu_of_tree(pid, below) for name, pid in pids.items()}


def memory_bytes(pids: Mapping[str, int]) -> dict[str, int]:
    """Memory each process and everything below it holds; a page that several share is counted once among them."""
    below = _children()
    return {name: sum(_proportional(each) for each in _tree(pid, below)) for name, pid in pids.items()}


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found


def _tree(pid: int, below: Mapping[int, list[int]]) -> list[int]:
    return [pid, *(each for child in below.get(pid, ()) for each in _tree(child, below))]


def _cpu_of_tree(pid: int, below: Mapping[int, list[int]]) -> float:
    # utime, stime, and those of children that have ended
    return sum(sum(map(int, _stat(each)[11:15])) for each in _tree(pid, below) if _stat(each)) / _TICKS


def _proportional(pid: int) -> int:
    """The kernel's proportional set size; 0 when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _stat(pid: int) -> list[str]:
    """The fields after the name; none when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
