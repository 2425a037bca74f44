"""A real PostgreSQL for one test session: started by the first test that needs it, gone with the session.

Each session has a folder and a socket of its own, so several can run side by side. Nothing is synced to disk.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookout.addresses import DatabaseAddress
from lookout.embedded import postgres

_FAST = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "max_connections=200",
    "wal_level=minimal",
    "max_wal_senders=0",
)


@contextmanager
def temporary_postgres() -> Iterator[DatabaseAddress]:
    """A server with an empty database, in a temporary folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tack-test-"))
    try:
        server = postgres.cluster(folder, log=folder / "postgres.log", settings=_FAST)
        child = postgres.start(server)
        try:
            yield server.address
        finally:
            postgres.stop(child)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
