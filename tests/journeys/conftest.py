"""What journeys share: a whole Tack, and the machine's Chromium with nothing downloaded and nothing sent home."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from lookout.client import Client
from tests.benchmarks.scratch import Scratch, scratch

# A machine that also runs everything else takes its time; nothing waits longer than it must.
expect.set_options(timeout=20_000)

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """How the browser is started. Without one these tests are skipped on a laptop and fail in CI."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "There is no Chromium here: install it (apt-get install chromium) to run the browser tests."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Chromium's own sandbox refuses to start for root; everybody else keeps it.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return {**browser_type_launch_args, "executable_path": found, "args": [*_QUIET, *sandbox]}


@pytest.fixture(scope="session")
def whole_tack() -> Iterator[Scratch]:
    """A whole Tack, started by the first journey that needs one. Each makes queues of its own."""
    with scratch() as started:
        started.var.parent.chmod(0o755)  # what keeps jobs out is the folder itself
        yield started


@pytest.fixture(scope="session")
def client(whole_tack: Scratch) -> Client:
    """Its admin."""
    return whole_tack.client


@pytest.fixture(scope="session")
def base_url() -> str | None:
    """None: every test says where it goes. (That of the plugin warns with this pytest.)"""
    return None
