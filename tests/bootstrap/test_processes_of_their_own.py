"""Web and worker under somebody else's supervisor: each reads the configuration before it does anything."""

import os
import subprocess
import sys

import pytest

from tests.bootstrap.running import CHECKOUT

WEB = ("-c", "import lookout.wsgi")
WORKER = ("-m", "celery", "--app", "lookout.celery", "worker", "--pool", "solo")
ON = {"TACK__SCHEDULING__RETRYPOLICY__ENABLED": "true"}
INDEXED = {"TACK__SCHEDULING__INDEXEDNODELABELS": "[kubernetes.io/hostname]"}
NO_RETRIES = {"TACK__SCHEDULING__RETRYPOLICY__GLOBALMAXRETRIES": "0"}
NOWHERE = {
    "DATABASE_URL": "postgresql://tack@127.0.0.1:9/tack",
    "BROKER_URL": "redis://127.0.0.1:9/0",
    "TACK_SECRET_KEY": "x" * 50,
}


def started(program: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program],
        cwd=CHECKOUT,
        env={**os.environ, **NOWHERE, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("program", [WEB, WORKER], ids=["web", "worker"])
def test_a_configuration_that_contradicts_itself_stops_the_start_with_its_fix(
    program: tuple[str, ...],
) -> None:
    done = started(program, ON)
    assert done.returncode != 0
    assert "scheduling.indexedNodeLabels lacks 'kubernetes.io/hostname'" in done.stderr
    assert "Add it to the list" in done.stderr


def test_a_global_limit_of_nothing_is_warned_of_at_the_start() -> None:
    done = started(WEB, ON | INDEXED | NO_RETRIES)
    assert done.returncode == 0
    assert "Retries are switched off: scheduling.retryPolicy.globalMaxRetries is 0." in done.stderr
