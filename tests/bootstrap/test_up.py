"""`tack up`: one command starts everything, a second one is told so, and nothing is left behind or broken."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from lookout.addresses import DatabaseAddress
from lookout.embedded.leftovers import birth_of
from lookout.embedded.services import NoPort, listen
from tests.bootstrap.running import CHECKOUT, Up, eventually, running

SIGN_IN_LINK = re.compile(r"http://127\.0\.0\.1:\d+/sign-in/\S+")


class Life:
    """One folder, and the Tack that runs on it: whoever needs one gets the one there is, or the next."""

    def __init__(self, var: Path) -> None:
        self._var = var
        self._last: Up | None = None

    def up(self) -> Up:
        """The one that runs; started when there is none."""
        if self._last is None or self._last.process.poll() is not None:
            self._last = Up(self._var).wait_until_started()
        return self._last

    def end(self) -> None:
        if self._last and self._last.process.poll() is None:
            self._last.stop()


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """What the tests of this file share. Those that end it come after those that look."""
    shared = Life(tmp_path_factory.mktemp("up") / "var")
    try:
        yield shared
    finally:
        shared.end()


@pytest.fixture
def up(life: Life) -> Up:
    """One to look at."""
    return life.up()


def test_it_prints_a_sign_in_link_and_what_each_step_took(up: Up) -> None:
    assert len(SIGN_IN_LINK.findall(up.printed)) == 1
    assert len(re.findall(r"\d+\.\d s$", up.printed, re.MULTILINE)) == 4


def test_an_executor_with_two_nodes_is_there_when_it_says_so(up: Up) -> None:
    with up.client() as client:
        (executor,) = client.executors()
        assert [node.name for node in executor.nodes] == ["local-1", "local-2"]
        assert client.me().role == "admin"


def test_everything_it_wrote_is_for_the_eyes_of_its_user_only(up: Up) -> None:
    top = [up.var, *up.var.iterdir()]
    open_to_others = [path.name for path in top if path.name != "lock" and path.stat().st_mode & 0o077]
    assert open_to_others == []


def test_the_configuration_it_writes_switches_retry_policies_on_and_knows_oom(up: Up) -> None:
    configuration = yaml.safe_load((up.var / "tack.yaml").read_text())
    assert configuration["scheduling"]["retryPolicy"]["enabled"] is True
    actions = {
        each["name"]: each["action"] for each in configuration["application"]["errorCategories"]["categories"]
    }
    assert actions["oom"] == "Delete"


def test_a_second_one_on_the_same_folder_is_refused_and_harms_nothing(up: Up) -> None:
    second = Up(up.var)
    assert second.wait() == 1
    with up.client() as client:
        assert f"Tack is already running at {client.url} (process {up.process.pid})" in second.printed
        assert client.me().name == "admin"


def test_another_one_beside_it_takes_the_next_free_port_and_tells_what_is_surprising_in_its_configuration(
    tmp_path: Path, up: Up
) -> None:
    surprising = {"TACK__SCHEDULING__MAXQUEUELOOKBACK": "0"}
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with running(tmp_path / "var", "--port", str(port), environment=surprising) as other:
            assert f"Port {port} is taken by another program" in other.printed
            eventually(lambda: "No job starts: scheduling.maxQueueLookback is 0." in other.printed)
            with other.client() as client, up.client() as first:
                assert client.url not in (f"http://127.0.0.1:{port}", first.url)
                assert client.me().name == "admin"


def test_what_is_killed_starts_again(up: Up) -> None:
    for service in ("worker", "broker", "web", "agent", "postgres"):
        before = up.pid_of(service)
        os.kill(before, signal.SIGKILL)
        eventually(lambda name=service, old=before: up.pid_of(name) != old)  # type: ignore[misc]
        assert f"{service} was ended by signal 9; it starts again in" in up.printed
    with up.client() as client:
        eventually(lambda: client.executors())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends children of the killed on Linux only")
def test_a_killed_supervisor_takes_everything_along_and_the_next_start_is_clean(life: Life) -> None:
    killed = life.up()
    token = (killed.var / "token").read_text()
    processes = killed.processes()
    assert len(processes) >= 9
    killed.process.kill()
    killed.process.wait()
    eventually(
        lambda: not any(birth_of(pid) == birth for pid, birth in processes.items()),
        lambda: f"Still there: {[pid for pid, birth in processes.items() if birth_of(pid) == birth]}",
    )
    again = life.up()
    with again.client() as client:
        assert client.me().name == "admin"
        assert (again.var / "token").read_text().split()[1] == token.split()[1]


def test_ctrl_c_gives_running_jobs_back_unattempted_and_the_next_start_runs_them_again(life: Life) -> None:
    first = life.up()
    with first.client() as client:
        client.create_queue({"name": "waiting"})
        (submitted,) = client.submit_jobs(job_of("waiting", "sleep 600", grace_seconds=2))
        eventually(lambda: client.job(submitted.job_id).state == "running")
    assert first.stop() == 0
    stopped = datetime.now(UTC)
    with life.up().client() as client:
        eventually(lambda: client.job(submitted.job_id).state == "running")
        returned, again = client.job(submitted.job_id).runs
        assert (returned.state, again.state) == ("lease_returned", "running")
        assert again.leased_at is not None and again.leased_at > stopped, (
            "leased to an agent that was leaving"
        )
        assert returned.json.get("attempted") in (False, None)
        assert list(client.decisions(job_id=submitted.job_id)) == []
        client.cancel_jobs([submitted.job_id])
        eventually(lambda: client.job(submitted.job_id).state == "cancelled")


def test_a_second_ctrl_c_takes_the_grace_away_from_a_job_that_ignores_the_first(life: Life) -> None:
    up = life.up()
    with up.client() as client:
        client.create_queue({"name": "deaf"})
        (submitted,) = client.submit_jobs(
            job_of("deaf", "trap '' TERM; echo deaf; sleep 600 & wait; sleep 600", grace_seconds=3_600)
        )
        eventually(lambda: client.job(submitted.job_id).state == "running")
        (run,) = client.job(submitted.job_id).runs
        up.process.send_signal(signal.SIGINT)
        eventually(lambda: "Tack is stopping" in up.printed)
        assert "Agent" not in up.printed.partition("Tack is stopping")[2]
        assert up.stop() == 0
    again = life.up()
    with again.client() as client:
        returned = client.run(run.run_id)
        assert (returned.state, bool(returned.category)) == ("lease_returned", False)
        # It runs again now, and is as deaf.
        again.process.send_signal(signal.SIGINT)
        eventually(lambda: "Tack is stopping" in again.printed)


def test_with_a_database_of_ones_own_no_admin_and_no_token_is_made(
    tmp_path: Path, postgres_address: DatabaseAddress
) -> None:
    environment = {"DATABASE_URL": postgres_address.url}
    with running(tmp_path / "var", environment=environment) as up:
        assert not (up.var / "postgres").exists()
        assert not (up.var / "token").exists()
        assert SIGN_IN_LINK.search(up.printed) is None
        assert "./tack person NAME --role admin --sign-in-link" in up.printed


def test_every_problem_of_the_configuration_is_told_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "scheduling: {maxRetrys: 1}\napplication: {errorCategories: {enabled: true, categories: [{name: x}]}}\n"
    )
    done = refused(
        ["-m", "lookout.embedded"],
        folder=tmp_path,
        TACK_VAR=str(tmp_path / "var"),
        TACK_CONFIG="mine.yaml",
        TACK__LOCAL__NODES="0",
    )
    heading, *problems = done.stderr.splitlines()
    assert heading == f"tack: The configuration {file} cannot be used:"
    assert [problem.split()[0] for problem in problems] == [
        "scheduling.maxRetrys",
        "local.nodes",
        "application.errorCategories.categories[0].rules:",
    ]
    assert not (tmp_path / "var" / "postgres").exists()
    assert done.stdout == ""


def test_a_folder_of_somebody_else_is_left_alone_with_a_sentence(tmp_path: Path) -> None:
    theirs, owner = Path("/usr"), "root"
    if os.geteuid() == 0:
        theirs, owner = tmp_path / "theirs", "nobody"
        theirs.mkdir()
        shutil.chown(theirs, owner)
    done = refused(["-m", "lookout.embedded"], TACK_VAR=str(theirs))
    assert f"{theirs} belongs to {owner}" in done.stderr
    assert f"Start it as {owner} again" in done.stderr


def test_a_full_disk_is_told_before_anything_is_written(tmp_path: Path) -> None:
    mount = f'mount -t tmpfs -o size=20m none "{tmp_path}" && exec "$0" -P -m lookout.embedded'
    mine = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = refused(
        ["sh", "-c", mount, sys.executable],
        before=["unshare", "--mount", *mine],
        TACK_VAR=str(tmp_path / "var"),
    )
    assert re.search(r"The disk of \S+ is full: \d+ MB are free, Tack needs 300 MB", done.stderr), done.stderr


def job_of(queue: str, script: str, *, grace_seconds: int) -> dict[str, object]:
    """A job file with one small job."""
    small = {"cpu": "100m", "memory": "16Mi"}
    container = {
        "name": "main",
        "command": ["sh", "-c", script],
        "resources": {"requests": small, "limits": small},
    }
    spec = {"terminationGracePeriodSeconds": grace_seconds, "containers": [container]}
    return {"queue": queue, "jobSetId": queue, "jobs": [{"podSpec": spec}]}


def refused(
    command: list[str],
    *,
    before: Sequence[str] = (sys.executable, "-P"),
    folder: Path | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """A start that ends at once with exit code 1."""
    done = subprocess.run(
        [*before, *command],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **more},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    return done


@pytest.mark.parametrize("port", [65_536, 80_000, -1])
def test_a_port_there_is_not_is_told_as_such(port: int) -> None:
    with pytest.raises(NoPort, match=rf"There is no port {port}: ports go from 1 to 65535\. "):
        listen(port)
