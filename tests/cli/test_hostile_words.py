"""What is said to `tack`, and what it says: a sentence for everything, and nothing that steers a terminal."""

import json
import math
from pathlib import Path

import pytest
import yaml

from lookout.cli.printing import print_json, print_yaml
from lookout.client import AddressInvalid, Client, TackError, Unsendable
from tests.cli.conftest import Tack
from tests.cli.small_server import Answer, SmallServer, refusal

NO_TEXT = "\udcff"
"""How Python shows a byte of the command line that is no UTF-8."""
STEERING = "\x1b[2J\x07\x9b31m\u202e\u2028\x00"


@pytest.mark.parametrize(
    "words",
    [
        ("get", "queue", NO_TEXT),
        ("get", "queue", ".."),
        ("get", "queue", ""),
        ("get", "job", "."),
        ("get", "jobs", "--queue", NO_TEXT),
        ("create", "queue", "q", "--priority-factor", "nan"),
        ("create", "queue", "q", "--priority-factor", "1e999"),
        ("update", "queue", NO_TEXT),
        ("delete", "queue", ".."),
        ("delete", "retry-policy", NO_TEXT, "--detach"),
        ("watch", NO_TEXT, "set"),
        ("watch", "queue", NO_TEXT),
    ],
)
def test_what_cannot_be_sent_is_told_and_not_sent(
    tack: Tack, server: SmallServer, words: tuple[str, ...]
) -> None:
    said = tack(*words)
    assert (said.code, said.out.replace("Watching job set \n", "").replace("Watching job set set\n", "")) == (
        1,
        "",
    )
    assert said.err.startswith("Error: This cannot be sent: ")
    assert not server.asked


@pytest.mark.parametrize(
    "words",
    [
        ("get", "jobs", "--limit", "0"),
        ("get", "jobs", "--limit", "9" * 30),
        ("get", "jobs", "--limit", "9" * 5_000),
        ("get", "jobs", "--state", "\x1b[2J"),
        ("create", "queue", "q", "--priority-factor", "one\x1b[2J"),
        ("create", "queue", "q", "--labels", "\x1b[2J"),
        ("\x1b[2J",),
        ("get", "\u202e"),
    ],
)
def test_what_is_no_command_is_told_in_plain_text(tack: Tack, words: tuple[str, ...]) -> None:
    said = tack(*words)
    assert said.code == 2
    assert all(line.isprintable() for line in said.err.split("\n"))


@pytest.mark.parametrize(
    "url", ["http://\udcff", "http://[::1", "http://x:99999999", "ftp://x", "x\x1b[2J", "http://" + "x" * 300]
)
def test_an_address_that_is_none(tack_alone: Tack, url: str) -> None:
    said = tack_alone("get", "queues", "--url", url)
    assert said.code == 1
    assert said.err.startswith("Error: ")
    assert all(line.isprintable() for line in said.err.split("\n"))


@pytest.mark.parametrize("content", [b"", b"\x00" * 10_000_000, b"a\nb\nc", b"\xff", b"http://x\n\x1b[2J"])
def test_a_token_file_that_is_none(tack_alone: Tack, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    said = tack_alone("get", "queues", "--token-file", str(file))
    assert said.code == 1
    assert said.err.startswith("Error: The token")


def test_a_name_in_a_refusal_steers_nothing(tack: Tack, server: SmallServer) -> None:
    message = f"There is no queue '{STEERING}'."
    problems = [{"path": f"x{STEERING}", "message": STEERING}]
    server.on("GET queues/q", refusal(404, "not_found", message, problems))
    said = tack("get", "queue", "q")
    assert said.code == 1
    assert all(line.isprintable() for line in said.err.split("\n"))


@pytest.mark.parametrize("text", [STEERING, f"{STEERING}\n{STEERING}", "a\nb\t", "\ud83d", "yes", "'\"\\"])
def test_documents_hold_every_character_and_steer_nothing(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"name": text, text: [text]}
    print_json(value)
    told = capsys.readouterr().out
    assert json.loads(told) == value
    assert told.isascii() or all(line.isprintable() for line in told.split("\n"))
    print_yaml({"name": text})
    told = capsys.readouterr().out
    if "\ud83d" not in text:  # half of a character is no YAML
        assert yaml.safe_load(told) == {"name": text}
    assert all(line.replace("\t", "").isprintable() for line in told.split("\n"))


def test_the_client_says_what_it_cannot_send(client: Client, server: SmallServer) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for body in ({"a": math.inf}, {"a": 10**5_000}, {"a": deep}, {"a": object()}, {"a": {1, 2}}):
        with pytest.raises(Unsendable):
            client.create_queue(body)
    with pytest.raises(Unsendable):
        client.check_retry_policy("name: \udcff")
    with pytest.raises(AddressInvalid):
        Client("http://\udcff")
    assert not server.asked


@pytest.mark.parametrize(
    "answer", ["", "[" * 100_000, "[]", '{"queues": 7}', '{"queues": [{"name": 7}]}', "1e999", "\x1b[2J"]
)
def test_an_answer_nobody_expects_is_an_error_of_ours(
    client: Client, server: SmallServer, answer: str
) -> None:
    server.on("GET queues", Answer(pieces=[answer]))
    with pytest.raises(TackError):
        client.queues()
