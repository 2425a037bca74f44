"""A question that takes too long is given up: no thread of the web waits for ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from lookout.access import ensure_person
from lookout.addresses import AddressInvalid, parse_database_url
from scheduler.actors import Role
from tests.api.caller import caller
from tests.hostile.soon import soon

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read of queues takes ten seconds, and a statement may take a tenth of one."""

    def read() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '100ms'")
            cursor.execute("SELECT pg_sleep(10)")

    monkeypatch.setattr("lookout.api.v1.queues.queue_rows", read)
    monkeypatch.setattr("lookout.pages.queues.queue_rows", read)


@pytest.mark.django_db
@pytest.mark.usefixtures("_slow")
def test_a_program_is_told_to_ask_for_less() -> None:
    olga = caller("olga", Role.OPERATOR)
    with soon():
        refused = olga.get("v1/queues")
    assert (refused.status, refused.error["code"]) == (503, "unavailable")
    assert "took too long" in refused.error["message"]


@pytest.mark.django_db
@pytest.mark.usefixtures("_slow")
def test_a_person_is_told_to_try_again() -> None:
    client = Client(raise_request_exception=False)
    client.force_login(ensure_person("olga", role=Role.OPERATOR))
    answer = client.get("/queues")
    assert answer.status_code == 503
    assert "did not answer in time" in answer.content.decode()


def printed(code: str, **environment: str) -> str:
    """What a fresh process prints or says on stderr."""
    command = [sys.executable, "-c", code]
    told = os.environ | {"TACK_SECRET_KEY": "tests"} | environment
    done = subprocess.run(command, cwd=CHECKOUT, env=told, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_web_process_limits_its_statements_and_others_do_not() -> None:
    told = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS'])"
    assert "statement_timeout=20s" in printed(f"import lookout.wsgi; {told}", DATABASE_URL="postgresql:///x")
    shared = {"DATABASE_URL": "postgresql:///x?options=-c%20jit%3Doff", "TACK_STATEMENT_SECONDS": "3"}
    limited = printed(f"import lookout.wsgi; {told}", **shared)
    assert "statement_timeout=3s" in limited
    assert "jit=off" in limited
    assert "timeout" not in printed(
        told, DATABASE_URL="postgresql:///x", DJANGO_SETTINGS_MODULE="lookout.settings"
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TACK_DATABASE_POOL", "many"),
        ("TACK_DATABASE_POOL", "-1"),
        ("TACK_STATEMENT_SECONDS", "9" * 5_000),
        ("TACK_LOG_LEVEL", "loud\nlouder"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(variable: str, value: str) -> None:
    assert f"{variable} " in printed("import lookout.settings", **{variable: value}).splitlines()[-1]


@pytest.mark.parametrize(
    "address",
    ["", "mysql://x/y", "postgresql://x:99999999/y", "postgresql://[::1/y", "postgresql://x", "\x00"],
)
def test_an_address_of_a_database_that_is_none(address: str) -> None:
    with pytest.raises(AddressInvalid, match=r"postgresql://user:password@host:port/name"):
        parse_database_url(address)
