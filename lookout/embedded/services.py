"""The processes that make up Tack: how each is started, and how it shows that it is ready."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from lookout.embedded import broker, postgres
from lookout.embedded.children import spawn
from lookout.embedded.files import last_lines, write_private
from lookout.embedded.folders import Folders
from lookout.embedded.supervisor import Service

CHECKOUT = Path(__file__).resolve().parent.parent.parent
EXECUTOR = "local"
FIRST_PORT = 8000
SERVERS, PROCESSES, AGENT, STORY = range(4)
"""Stages: each needs what comes before it."""
_PORTS_TRIED = 100
_START_SECONDS = 60.0
_LAST_PORT = 65_535
_AGENT_GRACE_SECONDS = 24 * 3600.0
"""As long as its jobs may take to end; Ctrl-C once more ends them at once."""
_WEB_PROCESSES = 2
_WEB_THREADS = 64
_LONG_POLLS = 40
"""Of the threads of a web process, how many agents may wait in; the rest is for people, reports and streams."""
_WEB_CONNECTIONS = 12
_WORKER_PROCESSES = 2
_AGENT_ENVIRONMENT = (
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "USER",
    "TERM",
)


class NotReady(RuntimeError):
    """A service ended, or did not become ready in time; the sentence names it and what it said last."""

    def __init__(self, service: Service) -> None:
        super().__init__(f"{service.name} did not start. {last_lines(service.log)}")


class NoPort(RuntimeError):
    """No port is free."""

    def __init__(self, first: int) -> None:
        if not 0 <= first <= _LAST_PORT:
            super().__init__(
                f"There is no port {first}: ports go from 1 to {_LAST_PORT}. Choose another with --port."
            )
            return
        last = min(first + _PORTS_TRIED - 1, _LAST_PORT)
        super().__init__(
            f"None of the ports {first} to {last} on 127.0.0.1 is free. Choose another with --port."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One Tack: its folders, its servers (None where the environment names others), its port."""

    folders: Folders
    database: postgres.Cluster | None
    broker: broker.Broker | None
    listener: socket.socket

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    @property
    def database_url(self) -> str:
        return self.database.address.url if self.database else os.environ["DATABASE_URL"]

    @property
    def broker_url(self) -> str:
        return self.broker.url if self.broker else os.environ["BROKER_URL"]

    def environment(self, **more: str) -> dict[str, str]:
        """What the processes of the scheduler are told."""
        chosen = {
            "TACK_VAR": str(self.folders.var),
            "TACK_CONFIG": str(self.folders.configuration_in_use),
        }
        addresses = {"DATABASE_URL": self.database_url, "BROKER_URL": self.broker_url}
        return {
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            **chosen,
            **addresses,
            **more,
        }


def listen(first_port: int) -> socket.socket:
    """A socket on the first free port of loopback from `first_port` on; 0 takes any. Raises NoPort.

    The supervisor keeps it open, so that requests wait instead of failing while the web is started again.
    """
    if not 0 <= first_port <= _LAST_PORT:
        raise NoPort(first_port)
    for port in range(first_port, first_port + _PORTS_TRIED) if first_port else [0]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            listener.close()
        else:
            listener.listen(512)
            return listener
    raise NoPort(first_port)


def keep_addresses(stack: Stack) -> None:
    """Write down what commands beside a running Tack need to know; each file is for our eyes only."""
    folders = stack.folders
    if not (folders.var / "secret").exists():
        write_private(folders.var / "secret", secrets.token_urlsafe(48))
    if stack.database:
        write_private(folders.var / "database.url", stack.database_url)
    if stack.broker:
        write_private(folders.var / "broker.url", stack.broker_url)
    write_private(folders.url, stack.url)


def forget_addresses(folders: Folders) -> None:
    """Nothing answers there any more."""
    for name in ("database.url", "broker.url", "url"):
        (folders.var / name).unlink(missing_ok=True)


def database_service(stack: Stack, server: postgres.Cluster) -> Service:
    return Service(
        name="postgres",
        log=stack.folders.log("postgres"),
        start=lambda: postgres.start(server),
        stop_signal=signal.SIGINT,
        grace_seconds=30,
    )


def broker_service(stack: Stack, server: broker.Broker) -> Service:
    return Service(
        name="broker", log=stack.folders.log("broker"), start=lambda: broker.start(server), grace_seconds=10
    )


def web_service(stack: Stack) -> Service:
    log = stack.folders.log("web")
    number = stack.listener.fileno()
    command = [
        *(sys.executable, "-P", "-m", "gunicorn", "lookout.wsgi", "--bind", f"fd://{number}"),
        *("--worker-class", "gthread", "--workers", str(_WEB_PROCESSES), "--threads", str(_WEB_THREADS)),
        *("--timeout", "60", "--graceful-timeout", "5", "--keep-alive", "30"),
        *("--worker-tmp-dir", str(stack.folders.run), "--no-control-socket"),
    ]
    env = stack.environment(TACK_DATABASE_POOL=str(_WEB_CONNECTIONS), TACK_LONG_POLLS=str(_LONG_POLLS))
    return Service(
        name="web",
        log=log,
        start=lambda: spawn(
            command, log=log, env=env, folder=CHECKOUT, at_our_death=signal.SIGQUIT, pass_fds=(number,)
        ),
        stage=PROCESSES,
        grace_seconds=8,
    )


def worker_service(stack: Stack) -> Service:
    log, ready = stack.folders.log("worker"), ready_file(stack, "worker")
    command = [
        *(sys.executable, "-P", "-m", "celery", "--app", "lookout.celery", "worker", "--queues", "decide"),
        *("--concurrency", str(_WORKER_PROCESSES), "--hostname", "decide@%h", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]
    # Django's checks ran with the migrations; here they would only make the start longer.
    env = stack.environment(TACK_DATABASE_POOL="2", TACK_READY_FILE=str(ready), CELERY_SKIP_CHECKS="1")

    def start() -> subprocess.Popen[bytes]:
        ready.unlink(missing_ok=True)
        # Told by a gentler signal it would first wait for the broker, which is gone as well then.
        return spawn(command, log=log, env=env, folder=CHECKOUT, at_our_death=signal.SIGKILL)

    return Service(name="worker", log=log, start=start, stage=PROCESSES, grace_seconds=10)


def schedule_service(stack: Stack) -> Service:
    log = stack.folders.log("schedule")
    command = [
        *(sys.executable, "-P", "-m", "celery", "--app", "lookout.celery", "beat", "--loglevel", "WARNING"),
        # In memory: the schedule is static, and a file of it would only be one more thing a crash can break.
        *("--scheduler", "celery.beat:Scheduler", "--pidfile", ""),
    ]
    env = stack.environment(CELERY_SKIP_CHECKS="1")
    return Service(
        name="schedule",
        log=log,
        start=lambda: spawn(command, log=log, env=env, folder=CHECKOUT),
        stage=PROCESSES,
        grace_seconds=3,
    )


def agent_service(stack: Stack) -> Service:
    log, folders, ready = stack.folders.log("agent"), stack.folders, ready_file(stack, "agent")
    command = [
        *(sys.executable, "-P", "-m", "scheduler.agent", "--url", stack.url, "--name", EXECUTOR),
        *("--token-file", str(folders.agent_token), "--config", str(folders.configuration_in_use)),
        *("--folder", str(folders.agent), "--runs-folder", str(folders.runs)),
    ]
    # No address of a database, no secret: an agent knows HTTP and nothing else.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _AGENT_ENVIRONMENT or name.startswith("TACK__")
    }
    env = {**kept, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1", "TACK_READY_FILE": str(ready)}

    def start() -> subprocess.Popen[bytes]:
        ready.unlink(missing_ok=True)
        # When we are killed the agent goes at once, without its grace: its runs live on and the next agent adopts them.
        return spawn(command, log=log, env=env, folder=CHECKOUT, at_our_death=signal.SIGKILL)

    return Service(name="agent", log=log, start=start, stage=AGENT, grace_seconds=_AGENT_GRACE_SECONDS)


def ready_file(stack: Stack, name: str) -> Path:
    return stack.folders.run / f"{name}.ready"


def wait_for_file(
    service: Service, child: subprocess.Popen[bytes], path: Path, *, meanwhile: Callable[[], None]
) -> None:
    """Wait until the service has written `path`. Raises NotReady."""
    _wait_until(path.exists, service, child, meanwhile)


def wait_for_web(
    service: Service, child: subprocess.Popen[bytes], url: str, *, meanwhile: Callable[[], None]
) -> None:
    """Wait until a page is served. Raises NotReady."""
    _wait_until(lambda: _serves(url), service, child, meanwhile)


def _wait_until(
    is_ready: Callable[[], bool],
    service: Service,
    child: subprocess.Popen[bytes],
    meanwhile: Callable[[], None],
) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise NotReady(service)
        meanwhile()
        time.sleep(0.02)


def _serves(url: str) -> bool:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < 500
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
