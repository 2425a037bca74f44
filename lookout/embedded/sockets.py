"""Folders for unix sockets: private, and short enough for the kernel."""

import hashlib
import os
import pwd
import tempfile
from pathlib import Path

_LONGEST_SOCKET_PATH = 100
OTHER_USER = "nobody"
"""Whom root's PostgreSQL runs as where the kernel refuses user namespaces; the sockets are that user's then."""


class FolderTaken(RuntimeError):
    """The folder for sockets belongs to somebody else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} belongs to somebody else. Remove it, or set TMPDIR to a folder of your own."
        )


def socket_folder(wanted: Path, *, longest_name: str) -> Path:
    """`wanted`, or a private folder among the temporary ones when a socket's path would grow too long.

    The folder is made when missing, for our eyes only (0700). Raises FolderTaken.
    """
    folder = wanted
    if len(os.fsencode(wanted / longest_name)) > _LONGEST_SOCKET_PATH:
        digest = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"tack-{os.geteuid()}-{digest}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.lstat().st_uid not in _owners():
        raise FolderTaken(folder)
    folder.chmod(0o700)
    return folder


def _owners() -> tuple[int, ...]:
    return (0, pwd.getpwnam(OTHER_USER).pw_uid) if os.geteuid() == 0 else (os.geteuid(),)
