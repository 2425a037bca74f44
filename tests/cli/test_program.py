"""The program itself: help, exit codes, errors in sentences."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookout.cli.main import tack as program
from tests.cli.answers import event, event_page, job_view
from tests.cli.conftest import Tack
from tests.cli.small_server import TOKEN, Answer, Asked, SmallServer, stream

WORDS = (
    *("up", "demo", "agent", "person", "token", "retention", "manage", "test", "bench", "login"),
    *("create", "apply", "update", "delete", "get", "submit", "cancel", "reprioritize", "preempt"),
    *("cordon", "uncordon", "watch"),
)


def test_help_lists_every_word_and_calls_the_program_tack(tack_alone: Tack) -> None:
    said = tack_alone("--help")
    assert said.code == 0
    assert said.out.startswith("Usage: tack [OPTIONS] COMMAND")
    listed = said.out.partition("Commands:\n")[2]
    assert tuple(line.split()[0] for line in listed.splitlines()) == WORDS
    assert "..." not in listed


def test_every_command_has_help_and_can_be_told_where_tack_is(tack_alone: Tack) -> None:
    paths = [
        *("create", "create queue", "create retry-policy", "apply", "update queue", "update retry-policy"),
        *("delete queue", "delete retry-policy", "get queue", "get queues", "get retry-policy"),
        *("get retry-policies", "get jobs", "get job", "submit", "cancel", "preempt", "watch", "login"),
    ]
    for path in paths:
        out = tack_alone(*path.split(), "--help").out
        assert out.startswith(f"Usage: tack {path}")
        assert "--url" in out
        assert "--token-file" in out


@pytest.mark.parametrize(
    "words",
    [
        ["frob"],
        ["get"],
        ["get", "frob"],
        ["create"],
        ["create", "queue"],
        ["create", "-f", "a.yaml", "queue", "b"],
        ["create", "retry-policy"],
        ["get", "jobs", "--limit", "0"],
        ["watch", "only-a-queue"],
        ["up"],
    ],
)  # fmt: skip
def test_what_is_not_a_command_ends_with_2(tack_alone: Tack, words: list[str]) -> None:
    said = tack_alone(*words)
    assert said.code == 2
    assert said.err


def test_words_of_other_programs_say_how_to_start_them(tack_alone: Tack) -> None:
    assert tack_alone("bench", "latency", "--fast").err == (
        "Error: 'bench' is started as ./tack bench, in the folder of Tack.\n"
    )


def test_where_nothing_answers_the_sentence_has_the_fix(tack: Tack, server: SmallServer) -> None:
    server.close()
    said = tack("get", "queues")
    assert (said.code, said.out) == (1, "")
    assert said.err == (
        f"Error: Nothing answers at {server.url}. Start Tack with ./tack up, or name another with --url.\n"
    )


def test_where_nothing_is_named_the_sentence_has_the_fix(tack_alone: Tack) -> None:
    said = tack_alone("get", "queues")
    assert said.code == 1
    assert "./tack up" in said.err


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_address_may_stand_before_or_after_the_words(
    tack_alone: Tack, server: SmallServer, alone: Path, place: str
) -> None:
    (alone / "mine").write_text(f"{server.url}\n{TOKEN}\n")
    server.on("GET queues", {"queues": []})
    options = ["--url", server.url, "--token-file", str(alone / "mine")]
    words = ["get", "queues"]
    assert tack_alone(*(options + words if place == "before" else words + options)).code == 0


def test_the_file_of_tack_up_is_enough(tack_alone: Tack, server: SmallServer, alone: Path) -> None:
    (alone / "token").write_text(f"{server.url}\n{TOKEN}\n")
    server.on("POST sign-in-links", {"path": "/sign-in/abc"}, status=201)
    assert tack_alone("login").out == f"{server.url}/sign-in/abc\n"


def test_without_a_good_token_the_sentence_says_where_to_put_one(
    tack_alone: Tack, server: SmallServer
) -> None:
    said = tack_alone("get", "queues", "--url", server.url)
    assert said.code == 1
    assert said.err == (
        "Error: The token is unknown or has expired.\nName a token with TACK_TOKEN or --token-file.\n"
    )


def started(server: SmallServer, *words: str) -> subprocess.Popen[bytes]:
    """The program in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "lookout.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TACK_URL": server.url, "TACK_TOKEN": TOKEN, "PYTHONUNBUFFERED": ""},
        # A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize("jobs", [1, 1_000])
def test_a_reader_that_has_seen_enough_gets_no_traceback(server: SmallServer, jobs: int) -> None:
    closed: list[subprocess.Popen[bytes]] = []

    def answer(_: Asked) -> Answer:
        stdout = closed[0].stdout
        assert stdout is not None
        stdout.close()
        return Answer(json={"jobs": [job_view(str(number)) for number in range(jobs)], "next": None})

    server.on("GET jobs", answer)
    with started(server, "get", "jobs", "--limit", "5000") as running:
        closed.append(running)
        assert running.stderr is not None
        assert (running.stderr.read(), running.wait()) == (b"", 1)


def test_interrupting_ends_with_130_and_no_traceback(server: SmallServer) -> None:
    interrupted: list[subprocess.Popen[bytes]] = []

    def pieces() -> Iterator[str]:
        interrupted[0].send_signal(signal.SIGINT)
        yield ": still here\n\n"

    server.on("GET events", event_page(event(1, "queued")))
    server.on("GET events", event_page())
    server.on("GET events", lambda _: stream(*pieces()))
    with started(server, "watch", "nightly", "report") as running:
        interrupted.append(running)
        _, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, b"\n")


def test_no_short_help_is_cut(tack_alone: Tack) -> None:
    for word, command in program.commands.items():
        assert command.get_short_help_str(60), word
        assert not command.get_short_help_str(60).endswith("..."), word


def test_the_version_is_the_one_of_the_changelog(tack: Tack) -> None:
    said = tack("--version")
    assert said.code == 0
    word, version = said.out.split()
    assert word == "tack"
    assert f"({version})" in (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
