"""Commands on the server: a name nobody can have is told, and nobody is made."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command, execute_from_command_line

from lookout.access import ensure_person
from lookout.models import Token

pytestmark = pytest.mark.django_db

NAMES = ["", " ", "n" * 254, "a\nb", "a\u202eb", "\x1b[2J", "\x00", "\udcff"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_nobody_can_have(name: str) -> None:
    for words in (["person", name], ["person", "olga", "--group", name]):
        with pytest.raises(CommandError) as refused:
            call_command(*words)
        assert str(refused.value).isprintable()
    assert not User.objects.exists()


@pytest.mark.parametrize("name", NAMES[1:])
def test_an_executor_or_note_that_makes_no_sense(name: str) -> None:
    ensure_person("olga")
    for words in (
        ["person", "olga", "--agent-token", name],
        ["token", "create", "olga", "--executor", name],
        ["token", "create", "olga", "--note", name * 3],
        ["token", "create", name],
        ["token", "revoke", name],
    ):
        with pytest.raises(CommandError) as refused:
            call_command(*words)
        assert len(str(refused.value)) < 600
    assert not Token.objects.exists()


@pytest.mark.parametrize("word", ["person", "token", "retention"])
def test_help_and_refusals_are_in_tacks_words(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        execute_from_command_line(["tack manage", word, "--help"])
    told = capsys.readouterr().out
    assert told.startswith(f"usage: tack {word} ")
    assert not {"--settings", "--pythonpath", "--traceback", "manage"} & set(told.split())
    with pytest.raises(CommandError, match=r"There is no person 'nobody'\.") as refused:
        call_command("token", "create", "nobody")
    assert type(refused.value).__name__ == "Error", "Django tells the name of the class before the sentence."
