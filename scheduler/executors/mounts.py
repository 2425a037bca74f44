"""Volumes at the paths a job names, without touching the machine's own tree. Standard library only.

A run with volumes gets a mount namespace of its own. In it each container that mounts something gets a root
made of the machine's own folders, bound one by one onto a small file system in memory, where missing folders
can be made and volumes be bound. All of it goes with the run's last process.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

MS_NODEV, MS_NOSUID = 4, 2
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
_MOST_ENTRIES = 2048

_libc = ctypes.CDLL(None, use_errno=True)


class MountError(OSError):
    """A volume cannot be put where the job wants it; the text says why."""

    def __init__(self, why: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, why)


def enter_namespace() -> None:
    """Give this process, and what it starts from now on, mounts of its own. Raises OSError."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        os.unshare(os.CLONE_NEWNS)
    else:
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            Path("/proc/self", name).write_text(text, encoding="ascii")
    _mount("none", Path("/"), "", MS_REC | MS_PRIVATE, "")


def mount_memory(folder: Path, *, size_bytes: int, uid: int | None) -> None:
    """Make a folder one whose files lie in memory, charged to whoever writes them. 0 is no bound but the run's."""
    options = ["mode=700"]
    if size_bytes:
        options.append(f"size={size_bytes}")
    if uid is not None:
        options += [f"uid={uid}", f"gid={uid}"]
    _mount("tmpfs", folder, "tmpfs", MS_NODEV | MS_NOSUID, ",".join(options))


def make_root(root: Path, mounts: Sequence[tuple[Path, str]]) -> None:
    """Make a folder the root of a container: the machine's tree with these volumes at these paths."""
    _mount("tmpfs", root, "tmpfs", MS_NODEV | MS_NOSUID, "mode=755")
    _mirror(Path("/"), root)
    for source, target in sorted(mounts, key=lambda mount: len(PurePosixPath(mount[1]).parts)):
        _bind(source, _made(root, PurePosixPath(target)))


def _made(root: Path, target: PurePosixPath) -> Path:
    """The folder of that path below the root, made where it is missing."""
    here = root
    for part in target.parts[1:]:
        if part in ("..", "."):
            raise MountError(f"The mount path {target} may not contain '{part}'.")
        below = here / part
        if below.is_symlink():
            raise MountError(f"The mount path {target} leads through a symbolic link. Choose another.")
        if not below.exists():
            if not _is_ours(root, here):
                _replace_by_mirror(here)
            below.mkdir(mode=0o755)
        here = below
    if not here.is_dir() or here == root:
        raise MountError(f"The mount path {target} is not a folder.")
    return here


def _is_ours(root: Path, folder: Path) -> bool:
    """Whether it lies on the root's own file system, not on one of the machine's."""
    return folder.stat().st_dev == root.stat().st_dev


def _replace_by_mirror(folder: Path) -> None:
    """Put a copy made of bound entries over a folder of the machine, so that entries can be added."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        original = Path(f"/proc/self/fd/{held}")  # still the machine's once the mirror lies over it
        _mount("tmpfs", folder, "tmpfs", MS_NODEV | MS_NOSUID, "mode=755")
        _mirror(original, folder)
    finally:
        os.close(held)


def _mirror(source: Path, copy: Path) -> None:
    entries = list(os.scandir(source))
    if len(entries) > _MOST_ENTRIES:
        raise MountError(f"No mount path can be made in {source}, which has {len(entries)} entries.")
    for entry in entries:
        made = copy / entry.name
        if entry.is_symlink():
            made.symlink_to(Path(entry.path).readlink())
            continue
        if entry.is_dir():
            made.mkdir()
        else:
            made.touch()
        _bind(Path(entry.path), made)


def _bind(source: Path, target: Path) -> None:
    _mount(str(source), target, "", MS_BIND | MS_REC, "")


def _mount(source: str, target: Path, kind: str, flags: int, options: str) -> None:
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    if result != 0:
        number = ctypes.get_errno()
        raise MountError(f"{target} cannot be mounted: {os.strerror(number)}", number)


def main() -> None:
    """Try it out: exit code 0 when volumes can be had here. The argument is an empty folder."""
    folder = Path(sys.argv[1])
    enter_namespace()
    make_root(folder, [(Path("/tmp"), "/tack-volume-probe/inner")])  # noqa: S108 (any folder will do)
    os.chroot(folder)


if __name__ == "__main__":
    main()
