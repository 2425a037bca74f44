"""Real agents in processes of their own, for tests: started, killed, started again on the same folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import yaml

from tests.executors.scheduler_stand_in import TOKEN, SchedulerStandIn

ROOT = Path(__file__).resolve().parents[2]

OOM_CATEGORIES = {
    "enabled": True,
    "categories": [
        {
            "name": "oom",
            "action": "Delete",
            "rules": [{"onConditions": ["OOMKilled"], "hint": "Give it more."}],
        },
        {"name": "late", "action": "Delete", "rules": [{"onConditions": ["DeadlineExceeded"]}]},
        {
            "name": "three",
            "rules": [{"onExitCodes": {"operator": "In", "values": [3]}, "subcategory": "kept"}],
        },
    ],
}
CONFIGURATION = {
    "application": {"errorCategories": OOM_CATEGORIES},
    "task": {"jobLeaseRenewalInterval": "1s"},
    "local": {"nodes": 2, "cpu": "1500m", "memory": "2Gi"},
}


class AgentProcess:
    """An agent and its folders, which jobs of any user can reach."""

    def __init__(self, scheduler: SchedulerStandIn, *, memory_by: str = "auto") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tack-test-"))
        self.folder.chmod(0o755)
        self.runs = self.folder / "runs"
        self.journal = self.folder / "agent" / "journal"
        self.ready = self.folder / "ready"
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        self._scheduler = scheduler
        self._memory_by = memory_by
        self._process: subprocess.Popen[bytes] | None = None
        (self.folder / "token").write_text(TOKEN)
        self.configure(CONFIGURATION)

    def configure(self, document: object) -> None:
        """What the next start reads."""
        (self.folder / "tack.yaml").write_text(yaml.safe_dump(document))

    def start(self) -> None:
        command = [
            sys.executable, "-m", "scheduler.agent", "--url", self._scheduler.url, "--name", "local",
            "--token-file", str(self.folder / "token"), "--config", str(self.folder / "tack.yaml"),
            "--folder", str(self.folder / "agent"), "--runs-folder", str(self.runs), "--memory-by", self._memory_by,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"TACK_READY_FILE": str(self.ready)},
            )

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def kill(self) -> None:
        """As the kernel would."""
        self._signal(signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        """Ask it to end, without waiting."""
        self._signal(signal.SIGTERM)

    def wait(self, timeout: float = 20.0) -> int:
        assert self._process is not None
        return self._process.wait(timeout)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.terminate()
            self.terminate()
            try:
                self.wait(10.0)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def processes_of(run_id: str) -> list[int]:
    """Processes that belong to a run, wherever they are; zombies have no environment any more."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"TACK_RUN_ID={run_id}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found
