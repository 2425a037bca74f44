"""Start a process as our child: in a session of its own, and gone when we are gone.

Linux ends such a child when the *thread* that started it ends, so start children from the main thread only.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_ON_LINUX = sys.platform == "linux"
_LIBC = ctypes.CDLL(None, use_errno=True) if _ON_LINUX else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a child is: us, us seen as an ordinary user (a user namespace of its own), or another user."""

    in_user_namespace: bool = False
    user: str | None = None
    group: str | None = None


OURSELVES = Identity()


def spawn(
    command: Sequence[str | Path],
    *,
    log: Path | None,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    identity: Identity = OURSELVES,
    at_our_death: signal.Signals = signal.SIGTERM,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `command`; its output is appended to `log`, or shown where ours is when there is none.

    On Linux the child gets the signal `at_our_death` when this thread ends.
    """
    with contextlib.ExitStack() as files:
        out = files.enter_context(log.open("ab")) if log else None
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=folder,
            start_new_session=True,
            pass_fds=pass_fds,
            user=identity.user,
            group=identity.group,
            extra_groups=[] if identity.user else None,
            preexec_fn=_prepare(identity, at_our_death, os.getpid()),
        )


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    identity: Identity = OURSELVES,
    timeout_seconds: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run `command` to its end and keep what it says. Raises subprocess.TimeoutExpired."""
    return subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=dict(env) if env is not None else None,
        timeout=timeout_seconds,
        user=identity.user,
        group=identity.group,
        extra_groups=[] if identity.user else None,
        preexec_fn=_prepare(identity, signal.SIGKILL, os.getpid()),
    )


def tell_to_end(child: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> None:
    """Send the child the signal it ends by. Harmless when it has ended."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)


def end(child: subprocess.Popen[bytes], *, grace_seconds: float) -> None:
    """Wait for the end of a child that was told to; after the grace end its whole session by force."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=grace_seconds)
    # What the child started shares its session; nothing of it may stay behind.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def end_with_parent(parent: int) -> None:
    """End this process at once, by SIGKILL, when `parent` ends. Does nothing where the kernel cannot (macOS)."""
    if _LIBC is not None:
        _end_with_parent(parent, signal.SIGKILL)


def _end_with_parent(parent: int, number: signal.Signals) -> None:
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    # The parent may have gone before the line above; then nobody would ever tell us.
    if os.getppid() != parent:
        os._exit(1)


def _prepare(identity: Identity, at_our_death: signal.Signals, parent: int) -> Callable[[], None]:
    uid, gid = os.geteuid(), os.getegid()

    def in_the_child() -> None:
        if identity.in_user_namespace:
            _enter_user_namespace(uid, gid)
        if _LIBC is not None:
            _end_with_parent(parent, at_our_death)

    return in_the_child


def _enter_user_namespace(uid: int, gid: int) -> None:
    os.unshare(os.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"1000 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"1000 {gid} 1")
