"""The embedded PostgreSQL: private, durable in its folder, and gone when its parent is."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from lookout.embedded import postgres
from lookout.embedded.sockets import socket_folder


def test_it_answers_over_a_private_socket_and_keeps_what_was_written(tmp_path: Path) -> None:
    server = postgres.cluster(tmp_path, log=tmp_path / "log")
    child = postgres.start(server)
    with psycopg.connect(server.address.url, autocommit=True) as session:
        session.execute("CREATE TABLE kept AS SELECT lower('ÄÖ') AS word")
    postgres.stop(child)

    child = postgres.start(server)
    with psycopg.connect(server.address.url) as session:
        assert session.execute("SELECT word FROM kept").fetchone() == ("äö",)
    postgres.stop(child)

    assert {path.name: path.stat().st_mode & 0o077 for path in (server.data, server.sockets)} == {
        "postgres": 0,
        "run": 0,
    }


def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    server = postgres.cluster(tmp_path, log=tmp_path / "log")
    child = postgres.start(server)
    try:
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(host=str(server.sockets), user="tack", password="guess", dbname="tack")
    finally:
        postgres.stop(child)


def test_a_folder_opened_to_all_is_closed_again_at_the_next_start(tmp_path: Path) -> None:
    server = postgres.cluster(tmp_path, log=tmp_path / "log")
    postgres.stop(postgres.start(server))
    subprocess.run(["chmod", "-R", "a+rX", str(tmp_path)], check=True)
    postgres.stop(postgres.start(server))
    assert server.data.stat().st_mode & 0o777 == 0o700


def test_a_deep_checkout_gets_its_sockets_in_a_short_place(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90) / "run"
    folder = socket_folder(deep, longest_name=".s.PGSQL.5432")
    assert len(str(folder)) < 90
    assert folder == socket_folder(deep, longest_name=".s.PGSQL.5432")
    folder.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user needs no other one")
def test_root_without_user_namespaces_gets_it_as_another_user_and_back_again() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tack-test-"))
    try:
        assert owner_and_starts([sys.executable, "-c", _START, folder]) == ["root", "1"]
        assert owner_and_starts([sys.executable, "-c", _NO_NAMESPACES + _START, folder]) == ["nobody", "2"]
        assert owner_and_starts([sys.executable, "-c", _START, folder]) == ["root", "3"]
    finally:
        shutil.rmtree(folder)


def owner_and_starts(command: list[str | Path]) -> list[str]:
    """What the program says at its end. One that asks for it gets a map of all users into its own namespace."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        said = child.stdout.readline().split()
        if said == ["map"]:
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{child.pid}/{name}").write_text("0 0 65536")
            child.stdin.write("mapped\n")
            child.stdin.flush()
            said = child.stdout.readline().split()
        assert child.wait(60) == 0, child.stderr.read()
    return said


# Root in a namespace below which the kernel makes no other: what root is in most containers.
_NO_NAMESPACES = """
import os, sys
os.unshare(os.CLONE_NEWUSER)
print("map", flush=True)
sys.stdin.readline()
open("/proc/sys/user/max_user_namespaces", "w").write("0")
"""
_START = """
import pathlib, sys, psycopg
from lookout.embedded import postgres
server = postgres.cluster(pathlib.Path(sys.argv[1]), log=pathlib.Path(sys.argv[1], "log"))
child = postgres.start(server)
with psycopg.connect(server.address.url, autocommit=True) as session:
    session.execute("CREATE TABLE IF NOT EXISTS starts (number int)")
    session.execute("INSERT INTO starts SELECT count(*) FROM starts")
    (starts,) = session.execute("SELECT count(*) FROM starts").fetchone()
print(server.data.owner(), starts)
postgres.stop(child)
"""


@pytest.mark.django_db
def test_the_test_database_is_postgresql_18_on_a_socket_of_this_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, current_setting('fsync'), inet_server_addr()"
        )
        version, fsync, address = cursor.fetchone()
    assert version >= 180000
    assert (fsync, address) == ("off", None)
