"""The API in a real web server: streams and waits let go of it when it stops."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from django.db import connection

from lookout.addresses import DatabaseAddress
from scheduler.actors import Role
from scheduler.models import Event
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.states import EventKind
from tests.api.caller import agent, caller
from tests.factories import make_executor, make_job

pytestmark = pytest.mark.django_db(transaction=True)

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def server(
    postgres_address: DatabaseAddress, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A gunicorn with one process and four threads on the database of the tests."""
    database = DatabaseAddress(
        name=connection.settings_dict["NAME"],
        user=postgres_address.user,
        password=postgres_address.password,
        host=postgres_address.host,
        port=postgres_address.port,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    command = [sys.executable, "-m", "gunicorn", "lookout.wsgi", "--bind", f"fd://{listener.fileno()}"]
    command += [
        "--worker-class",
        "gthread",
        "--threads",
        "4",
        "--graceful-timeout",
        "20",
        "--no-control-socket",
    ]
    environment = os.environ | {
        "DATABASE_URL": database.url,
        "TACK_VAR": str(tmp_path),
        "TACK_DATABASE_POOL": "2",
        "TACK_SECRET_KEY": "tests",
    }
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment, pass_fds=(listener.fileno(),)) as process:
        yield process, f"http://127.0.0.1:{listener.getsockname()[1]}"
        process.send_signal(signal.SIGQUIT)  # to its worker as well, which would keep the database in use
        process.wait(30)
    listener.close()


def test_streams_and_waits_end_at_once_when_the_server_stops(
    server: tuple[subprocess.Popen[bytes], str],
) -> None:
    process, url = server
    job = make_job()
    make_executor()
    created = database_now()
    Event.objects.append(
        [NewEvent(job_set_id=job.job_set_id, job_id=job.id, kind=EventKind.QUEUED, created=created)]
    )
    reader = {"Authorization": f"Bearer {caller('bob', Role.READER).token}", "Accept": "text/event-stream"}
    where = {"queue": "nightly", "jobSet": "set"}
    with (
        httpx.Client(timeout=30, trust_env=False) as client,
        client.stream("GET", f"{url}/api/v1/events", params=where, headers=reader) as answer,
    ):
        lines = answer.iter_lines()
        assert "id: 1" in (line for line in lines)
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        list(lines)
        assert time.monotonic() - begin < 3
    assert process.wait(20) == 0


def test_a_waiting_agent_is_answered_when_the_server_stops(
    server: tuple[subprocess.Popen[bytes], str],
) -> None:
    process, url = server
    make_executor()
    headers = {"Authorization": f"Bearer {agent('local').token}"}
    asked = {"executor": "local", "runs": [], "waitSeconds": 0}
    with httpx.Client(timeout=30, trust_env=False, headers=headers, base_url=url) as client:
        assert client.post("/api/executor/v1/work", json=asked).status_code == 200
        begin = time.monotonic()
        with subprocess.Popen(["/bin/sh", "-c", f"sleep 1; kill -TERM {process.pid}"]):
            answer = client.post("/api/executor/v1/work", json=asked | {"waitSeconds": 20})
    assert answer.json() == {"leases": [], "stop": [], "forget": [], "missed": [], "askAgainSeconds": 0.0}
    assert 0.9 < time.monotonic() - begin < 5
    assert process.wait(20) == 0


_HOST = b"Host: localhost\r\n"
RAW: dict[str, bytes] = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a line without end": b"GET /" + b"x" * 100_000,
    "a header without end": b"GET / HTTP/1.1\r\nHost: " + b"x" * 100_000,
    "thousands of headers": b"GET / HTTP/1.1\r\n" + _HOST + b"X: y\r\n" * 5_000 + b"\r\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\n" + _HOST + b"X: a\x00b\r\n\r\n",
    "a NUL in the address": b"GET /\x00 HTTP/1.1\r\n" + _HOST + b"\r\n",
    "another charset of a NUL": b"POST /sign-in HTTP/1.1\r\n" + _HOST
    + b"Content-Type: text/plain; charset=\x00\r\nContent-Length: 0\r\n\r\n",
    "two lengths": b"POST /sign-in HTTP/1.1\r\n" + _HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "a negative length": b"POST /sign-in HTTP/1.1\r\n" + _HOST + b"Content-Length: -1\r\n\r\n",
    "length and chunks": b"POST /sign-in HTTP/1.1\r\n" + _HOST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk of no length": b"POST /sign-in HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "two tokens": b"GET /api/v1/queues HTTP/1.1\r\n" + _HOST
    + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    "a token that is no text": b"GET /api/v1/queues HTTP/1.1\r\n" + _HOST + b"Authorization: Bearer \xff\xfe\r\n\r\n",
    "another host": b"GET /api/v1/queues HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "no host": b"GET /sign-in HTTP/1.0\r\n\r\n",
    "the whole address": b"GET http://evil.example/sign-in HTTP/1.1\r\n" + _HOST + b"\r\n",
    "a method nobody knows": b"BREW /sign-in HTTP/1.1\r\n" + _HOST + b"\r\n",
}  # fmt: skip


def test_no_bytes_on_the_line_end_in_a_fault(server: tuple[subprocess.Popen[bytes], str]) -> None:
    process, url = server
    host, port = url.removeprefix("http://").split(":")
    with httpx.Client(timeout=30, trust_env=False) as client:
        assert client.get(f"{url}/healthz").status_code == 200
    for name, sent in RAW.items():
        assert _status_of(host, int(port), sent) < 500, name
    assert process.poll() is None
    with httpx.Client(timeout=30, trust_env=False) as client:
        assert client.get(f"{url}/healthz").status_code == 200


def _status_of(host: str, port: int, sent: bytes) -> int:
    """The status of the answer; 0 where the server hung up without one."""
    with socket.create_connection((host, port), timeout=20) as line:
        try:
            line.sendall(sent)
            with suppress(OSError):  # where the server has answered and closed the line already
                line.shutdown(socket.SHUT_WR)
            answer = line.recv(64)
        except ConnectionError:
            return 0
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else 0


def test_without_a_key_that_all_its_processes_share_no_web_server_starts(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TACK_SECRET_KEY"}
    done = subprocess.run(
        [sys.executable, "-c", "import lookout.wsgi"],
        cwd=CHECKOUT,
        env={**environment, "TACK_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "lookout.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Set TACK_SECRET_KEY to a long random text, the same for every web process." in done.stderr
