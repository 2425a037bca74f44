"""A small server, the program `tack` pointed at it, and a client of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lookout.cli.main import main
from lookout.client import Client
from tests.cli.small_server import TOKEN, SmallServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


type Tack = Callable[..., Said]


@pytest.fixture
def server() -> Iterator[SmallServer]:
    """A server that refuses everything it was not told to answer."""
    made = SmallServer()
    yield made
    made.close()


@pytest.fixture
def client(server: SmallServer) -> Iterator[Client]:
    """A client of the small server."""
    with Client(server.url, token=TOKEN) as made:
        yield made


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No Tack of this machine is found; the folder where its files would be."""
    monkeypatch.delenv("TACK_URL", raising=False)
    monkeypatch.delenv("TACK_TOKEN", raising=False)
    monkeypatch.setenv("TACK_VAR", str(tmp_path))
    return tmp_path


@pytest.fixture
def tack_alone(alone: Path, capsys: pytest.CaptureFixture[str]) -> Tack:
    """The program `tack` where nothing says where Tack is."""

    def run(*words: str) -> Said:
        code = main(words)
        printed = capsys.readouterr()
        return Said(code=code, out=printed.out, err=printed.err)

    return run


@pytest.fixture
def tack(tack_alone: Tack, server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> Tack:
    """The program `tack`, pointed at the small server."""
    monkeypatch.setenv("TACK_URL", server.url)
    monkeypatch.setenv("TACK_TOKEN", TOKEN)
    return tack_alone
