"""The reference of command line and client says what there is, and its example runs."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pytest_django.live_server_helper import LiveServer

import lookout.client
from lookout.access import ensure_person, issue_token
from lookout.cli.main import tack
from scheduler.actors import Role

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
COMMAND_LINE = (REFERENCE / "command-line.md").read_text()
CLIENT = (REFERENCE / "client.md").read_text()


def commands(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group with the words that lead to it."""
    for word, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *words, word)
        yield " ".join((*words, word)), command


@pytest.mark.parametrize(("words", "command"), list(commands(tack)))
def test_every_command_and_option_is_in_the_reference(words: str, command: click.Command) -> None:
    assert re.search(rf"tack {words}\b|`{words}( NAME)?`", COMMAND_LINE) or isinstance(command, click.Group)
    for parameter in command.params:
        for name in parameter.opts if isinstance(parameter, click.Option) else ():
            assert re.search(rf"(?<![\w-]){name}(?![\w-])", COMMAND_LINE), name


def test_every_public_name_of_the_client_is_in_its_reference() -> None:
    missing = [name for name in lookout.client.__all__ if not re.search(rf"\b{name}\b", CLIENT)]
    assert missing == []


def test_every_call_of_the_client_is_in_its_reference() -> None:
    calls = inspect.getmembers(lookout.client.Client, inspect.isfunction)
    missing = [name for name, _ in calls if not name.startswith("_") and f"{name}(" not in CLIENT]
    assert missing == []


@pytest.mark.django_db(transaction=True)
def test_the_example_of_the_client_runs(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TACK_URL", live_server.url)
    monkeypatch.setenv("TACK_TOKEN", issue_token(ensure_person("olga", role=Role.OPERATOR)))
    example = re.search(r"```python\n(.*?)```", CLIENT, re.DOTALL)
    assert example is not None
    command = re.search(r'^\.venv/bin/python -c "(.*)"$', CLIENT, re.MULTILINE)
    assert command is not None
    for code in (command[1], example[1]):
        exec(compile(code, "client.md", "exec"), {})  # noqa: S102  the page promises that it runs
    name, *printed = capsys.readouterr().out.splitlines()
    assert name == "olga"
    assert [line.split()[1] for line in printed[:-1]] == ["submitted", "queued"]
    assert printed[-1] == "queued"
