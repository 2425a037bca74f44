"""Start one container's process: apart from the runner, without rights or belongings. Standard library only."""

import contextlib
import ctypes
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
_NEVER_STARTED = 128
_FIRST_FREE = 4
_OOM_SCORE = "500"

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Set one property of this process. Raises OSError."""
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What to start, and as whom."""

    argv: list[str]
    environment: dict[str, str]
    folder: str
    uid: int | None
    """None: as whoever the runner is."""
    group: Path | None
    """The control group to start in."""
    root: Path | None = None
    """The folder that is to be `/`."""


class NotStartedError(Exception):
    """The command could not be started: not found, not allowed, no such folder."""


def start(command: Command, output: int) -> int:
    """Start a command with its output going to a descriptor; the number of its process, which leads a session.

    Returns once the command runs. Raises NotStartedError.
    """
    told, tell = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become(command, output, tell)
    os.close(tell)
    try:
        why = _read_all(told)
    finally:
        os.close(told)
    if why:
        os.waitpid(pid, 0)
        raise NotStartedError(why.decode("utf-8", errors="replace"))
    return pid


def _read_all(descriptor: int) -> bytes:
    data = b""
    while piece := os.read(descriptor, 4096):
        data += piece
    return data


def _become(command: Command, output: int, tell: int) -> NoReturn:
    """In the child: never returns, never runs anything of the parent's."""
    try:
        runner = os.getppid()
        if command.group is not None:
            (command.group / "cgroup.procs").write_text("0", encoding="ascii")
        os.setsid()
        tell = _settle_descriptors(output, tell)
        if command.root is not None:
            os.chroot(command.root)
        _settle_limits(own_user=command.uid is not None)
        if command.uid is not None:
            _give_up_rights(command.uid)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after changing user, which clears it
        if os.getppid() != runner:
            os._exit(_NEVER_STARTED)
        os.umask(0o022)
        os.chdir(command.folder)
        os.execvpe(command.argv[0], command.argv, command.environment)  # noqa: S606 (a command is what runs)
    except OSError as error:
        _tell(tell, _sentence(command, error))
    except BaseException as error:  # noqa: BLE001 (the child must not become a second runner)
        _tell(tell, f"{type(error).__name__}: {error}")
    os._exit(_NEVER_STARTED)


def _tell(tell: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(tell, text.encode("utf-8", errors="replace"))


def _sentence(command: Command, error: OSError) -> str:
    if not Path(command.folder).is_dir():
        return f"the working directory {command.folder!r} does not exist or may not be entered"
    return f"{command.argv[0]!r} cannot be executed: {error.strerror}"


def _settle_descriptors(output: int, tell: int) -> int:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if tell != _FIRST_FREE - 1:
        os.dup2(tell, _FIRST_FREE - 1, inheritable=False)
    os.closerange(_FIRST_FREE, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return _FIRST_FREE - 1


def _settle_limits(*, own_user: bool) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits that
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if own_user:  # counted per user: only one that nobody else has can be limited
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NPROC, (4096, 4096))
    with contextlib.suppress(OSError):  # when the machine itself runs out, jobs go before Tack
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")


def _give_up_rights(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
