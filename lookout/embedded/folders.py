"""Everything `tack up` writes lies under var/: whether it may be used, who uses it already, is there room."""

import fcntl
import hashlib
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOM_NEEDED_MB = 300
"""PostgreSQL's data of a first start, its first write-ahead logs, and some output of jobs."""


class StartRefused(RuntimeError):
    """Tack does not start; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The places of one Tack. Every folder is for our eyes only (0700)."""

    var: Path

    @property
    def logs(self) -> Path:
        return self.var / "log"

    @property
    def run(self) -> Path:
        return self.var / "run"

    @property
    def agent(self) -> Path:
        return self.var / "agent"

    @property
    def configuration(self) -> Path:
        """The one that the first start writes."""
        return self.var / "tack.yaml"

    @property
    def configuration_in_use(self) -> Path:
        """The one that TACK_CONFIG names, or else ours. Absolute: its readers stand in other folders than we."""
        return Path(os.environ.get("TACK_CONFIG") or self.configuration).absolute()

    @property
    def token(self) -> Path:
        """The admin's token for the command line: two lines, address and token."""
        return self.var / "token"

    @property
    def agent_token(self) -> Path:
        return self.var / "agent.token"

    @property
    def url(self) -> Path:
        return self.var / "url"

    @property
    def told(self) -> Path:
        """Exists once the story was told to its end."""
        return self.var / "story.told"

    @property
    def runs(self) -> Path:
        """Where runs of the local executor get their folders.

        Started as root, jobs run as a user who may not enter var/, so theirs lie in a temporary place.
        """
        if os.geteuid() != 0:
            return self.var / "runs"
        digest = hashlib.sha256(os.fsencode(self.var)).hexdigest()[:12]
        return _place_open_to_all() / f"tack-runs-{digest}"

    def leave_runs(self) -> None:
        """Remove the folder of runs when it is empty: nothing of ours stays in a place that is not ours."""
        with suppress(OSError):
            self.runs.rmdir()

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def prepare(var: Path) -> Folders:
    """Make what is missing under `var`. Raises StartRefused when it is not ours, or the disk is full."""
    folders = Folders(var=var.absolute())
    try:
        folders.var.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(
            f"{folders.var} cannot be made ({error.strerror}). Set TACK_VAR to a folder of your own."
        ) from error
    owner = folders.var.stat().st_uid
    if owner != os.geteuid():
        raise StartRefused(
            f"{folders.var} belongs to {_name_of(owner)}: Tack was started by {_name_of(owner)} before. Start it as"
            f" {_name_of(owner)} again, or move the folder away (its jobs and policies go with it), or set TACK_VAR"
            " to another folder."
        )
    _check_room(folders.var)
    for folder in (folders.var, folders.logs, folders.run, folders.agent):
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
    return folders


@contextmanager
def only_one(folders: Folders) -> Iterator[None]:
    """Keep every other `tack up` out of this folder while the block runs. Raises StartRefused when one is in."""
    with (folders.var / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise StartRefused(_already_running(folders, file.read().strip())) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
        file.truncate(0)


def free_mb(folder: Path) -> int:
    """Megabytes we may still write there."""
    return shutil.disk_usage(folder).free // (1024 * 1024)


def full_disk_sentence(folder: Path) -> str:
    return f"The disk of {folder} is full: {free_mb(folder)} MB are free. Make room; nothing that was stored is lost."


def _check_room(folder: Path) -> None:
    if free_mb(folder) < ROOM_NEEDED_MB:
        raise StartRefused(
            f"The disk of {folder} is full: {free_mb(folder)} MB are free, Tack needs {ROOM_NEEDED_MB} MB to start."
            " Make room, or set TACK_VAR to a folder on another disk."
        )


def _already_running(folders: Folders, pid: str) -> str:
    address = folders.url.read_text().strip() if folders.url.exists() else ""
    return (
        f"Tack is already running{f' at {address}' if address else ''}{f' (process {pid})' if pid else ''}. Use that"
        " one, or stop it first with Ctrl-C where it was started. For a second Tack beside it, set TACK_VAR to"
        " another folder."
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user number {uid}"


def _place_open_to_all() -> Path:
    for place in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108 - for jobs of another user
        if all(parent.stat().st_mode & 0o001 for parent in (place, *place.parents)):
            return place
    return Path("/var/tmp")  # noqa: S108
