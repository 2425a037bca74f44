"""Where the client looks for Tack and for a token."""

from pathlib import Path

import pytest

from lookout.client import AddressInvalid, AddressUnknown, TokenFileUnreadable, TokenInvalid
from lookout.wire.credentials import Credentials, find_credentials

HERE = "http://127.0.0.1:8000"
ELSEWHERE = "https://tack.example.org"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "token").write_text(f"{HERE}\nsecret\n")
    return {"TACK_VAR": str(tmp_path)}


def test_the_file_of_tack_up_gives_address_and_token(environment: dict[str, str]) -> None:
    assert find_credentials(environment=environment) == Credentials(url=HERE, token="secret")


def test_the_environment_wins_over_the_file(environment: dict[str, str]) -> None:
    named = environment | {"TACK_URL": ELSEWHERE, "TACK_TOKEN": "theirs"}
    assert find_credentials(environment=named) == Credentials(url=ELSEWHERE, token="theirs")


def test_an_argument_wins_over_the_environment(environment: dict[str, str]) -> None:
    named = environment | {"TACK_URL": ELSEWHERE}
    assert find_credentials(url=HERE, environment=named).url == HERE


def test_the_token_of_the_file_is_never_shown_to_another_address(environment: dict[str, str]) -> None:
    assert find_credentials(url=ELSEWHERE, environment=environment).token == ""
    assert find_credentials(environment=environment | {"TACK_URL": ELSEWHERE}).token == ""


def test_a_slash_at_the_end_makes_no_other_address(environment: dict[str, str]) -> None:
    assert find_credentials(url=f"{HERE}/", environment=environment) == Credentials(url=HERE, token="secret")


def test_a_token_file_named_wins_over_address_and_token_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text(f"{HERE}\nmine\n")
    named = {"TACK_URL": ELSEWHERE, "TACK_TOKEN": "theirs", "TACK_VAR": str(tmp_path)}
    assert find_credentials(token_file=tmp_path / "mine", environment=named) == Credentials(
        url=HERE, token="mine"
    )


def test_a_token_file_of_one_line_is_a_token_for_whatever_address_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    found = find_credentials(url=ELSEWHERE, token_file=tmp_path / "mine", environment={})
    assert found == Credentials(url=ELSEWHERE, token="mine")


def test_without_any_of_them_the_sentence_says_how_to_start_or_name_one(tmp_path: Path) -> None:
    with pytest.raises(AddressUnknown, match=r"\./tack up.*--url or TACK_URL"):
        find_credentials(environment={"TACK_VAR": str(tmp_path)})


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://here", "http://", "tack", "http://[::1", "http://x:y"]
)
def test_what_is_no_address_is_refused_with_the_form(url: str) -> None:
    with pytest.raises(AddressInvalid, match="http://host:port"):
        find_credentials(url=url, environment={"TACK_VAR": "/nonexistent"})


@pytest.mark.parametrize("content", ["", "a\nb\nc\n"])
def test_a_token_file_of_another_form_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(TokenFileUnreadable, match="two lines"):
        find_credentials(token_file=tmp_path / "token", environment={})


def test_a_token_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TokenFileUnreadable, match="missing cannot be used: No such file"):
        find_credentials(token_file=tmp_path / "missing", environment={})


@pytest.mark.parametrize("token", ["größe", "two\nlines"])
def test_a_token_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(TokenInvalid, match="Copy it again"):
        find_credentials(url=HERE, token=token, environment={"TACK_VAR": "/nonexistent"})
