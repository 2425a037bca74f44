"""The processes of a Tack that a chaos run kills, found where they are: by name, by parent, by what they hold."""

import json
import os
import random
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from lookout.embedded.folders import Folders

_RUNNER = "scheduler.executors.runner"


class Victims:
    """Who can be killed in the Tack of a folder. A process that is not there now is no victim now."""

    def __init__(self, var: Path, chance: random.Random) -> None:
        self._var = var
        self._runs = Folders(var=var).runs
        self._chance = chance
        self.kinds: Mapping[str, Callable[[], list[int]]] = {
            "supervisor": self._supervisor,
            "web": lambda: self._service("web"),
            "worker": lambda: self._service("worker"),
            "postgres": lambda: self._service("postgres"),
            "broker": lambda: self._service("broker"),
            "agent": lambda: self._service("agent"),
            "schedule": lambda: self._service("schedule"),
            "zygote": self._zygote,
            "runner": self._runner,
            "a process of the web": lambda: self._one_below("web"),
            "a process of the worker": lambda: self._one_below("worker"),
            "a process of postgres": lambda: self._one_below("postgres"),
        }

    def kill(self, kind: str) -> bool:
        """SIGKILL one of that kind with all that are it. False when there was none."""
        killed = False
        for pid in self.kinds[kind]():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed = True
        return killed

    def _supervisor(self) -> list[int]:
        with suppress(OSError, ValueError):
            return [int((self._var / "lock").read_text())]
        return []

    def _service(self, name: str) -> list[int]:
        with suppress(OSError, ValueError, KeyError):
            return [int(json.loads((self._var / "run" / "children.json").read_text())[name][0])]
        return []

    def _one_below(self, name: str) -> list[int]:
        below = [each for pid in self._service(name) for each in _children(pid)]
        return [self._chance.choice(below)] if below else []

    def _zygote(self) -> list[int]:
        return [
            pid for agent in self._service("agent") for pid in _children(agent) if _RUNNER in _command(pid)
        ]

    def _runner(self) -> list[int]:
        """One that holds a run now: it has claimed its folder and not written its end."""
        held = [
            claim
            for claim in self._runs.glob("armada-*/runner.json")
            if not claim.with_name("end.json").exists()
        ]
        self._chance.shuffle(held)
        for claim in held:
            with suppress(OSError, ValueError):
                pid = int(json.loads(claim.read_text())["pid"])
                if pid and _RUNNER in _command(pid):
                    return [pid]
        return []


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(each) for each in task.read_text().split()]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
