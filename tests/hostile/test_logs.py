"""What somebody sent can stand in a line of a log, and never make one."""

import io
import logging
import re
import sys
from collections.abc import Callable, Iterator

import pytest
import structlog
from django.test import Client

from lookout.api.executor import endpoints
from scheduler.agent.__main__ import _Lines
from scheduler.fields import written_out
from tests.api.caller import agent
from tests.log_lines import log_lines

FORGED = "2026-01-01T00:00:00Z [error    ] forged"
HOSTILE = f"x\r\n{FORGED}\x1b[2J\x07\x9b\u2028\u202e"
type Say = Callable[[str], None]


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    """What the handlers of the settings write."""
    with log_lines() as text:
        yield text


def raise_and_tell(tell: Callable[[], None]) -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        tell()


WAYS: dict[str, Say] = {
    "an event": lambda text: structlog.get_logger("x").warning(text),
    "a value": lambda text: structlog.get_logger("x").warning("told", path=text, more={"a": [text]}),
    "the standard library": lambda text: logging.getLogger("x").warning("told %s", text),
    "an exception": lambda _: raise_and_tell(lambda: logging.getLogger("x").exception("failed")),
    "an exception of ours": lambda _: raise_and_tell(
        lambda: structlog.get_logger("x").error("failed", exc_info=True)
    ),
}


@pytest.mark.parametrize("say", WAYS.values(), ids=WAYS)
def test_nothing_that_is_logged_makes_a_line_of_its_own(say: Say, told: io.StringIO) -> None:
    say(HOSTILE)
    lines = told.getvalue().split("\n")[:-1]
    assert sum(re.match(r"\d{4}-", line) is not None for line in lines) == 1
    assert all(line.isprintable() for line in lines)


@pytest.mark.django_db
def test_an_address_is_logged_in_one_line(told: io.StringIO) -> None:
    Client(raise_request_exception=False).get("/api/v1/a%0d%0a2026-01-01T00:00:00Z%1b[2J%e2%80%ae")
    (line,) = told.getvalue().split("\n")[:-1]
    assert line.isprintable()


@pytest.mark.django_db
def test_a_fault_of_ours_is_logged_without_what_was_sent(
    told: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr(endpoints, "record_reports", fail)
    body = {"executor": "local", "reports": [{"runId": "secret of a job", "state": "failed"}]}
    assert agent("local").post("executor/v1/reports", body).status == 500
    assert "secret of a job" not in told.getvalue()
    assert all(line.isprintable() for line in told.getvalue().split("\n"))
    assert not re.search(rf"^{re.escape(FORGED)}", told.getvalue(), re.MULTILINE)


def test_the_agent_logs_in_lines_too() -> None:
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "told %s", (HOSTILE,), None)
    raise_and_tell(lambda: setattr(record, "exc_info", sys.exc_info()))
    first, *others = _Lines("%(levelname)s %(message)s").format(record).split("\n")
    assert first == f"ERROR told {written_out(HOSTILE)}"
    assert all(line.startswith("    ") and line.isprintable() for line in others)
