"""What every test can use: a real PostgreSQL, started by the first test that asks for a database."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test.client import ClientHandler
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from lookout.addresses import DatabaseAddress
from scheduler.actors import Actor
from tests import people
from tests.postgres import temporary_postgres

# Playwright keeps an event loop in the test's thread; Django must not take that for an asynchronous view.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


_FAST_FIRST = (
    "policies",
    "conformance",
    "cli",
    "scheduler",
    "api",
    "permissions",
    "hostile",
    "fuzz",
    "pages",
    "docs",
    "executors",
    "bootstrap",
    "journeys",
)
_ONE_AT_A_TIME = ("executors", "bootstrap", "journeys")
"""They start whole Tacks and watch the time: together they would want more than two cores have."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A run of everything is shared by two processes; whoever names files or folders gets them in this one."""
    return 2 if config.args_source is pytest.Config.ArgsSource.TESTPATHS else 0


class _FilesApart(LoadScopeScheduling):  # type: ignore[misc]
    """A file goes to one of the processes as a whole; those that go one at a time all go to the same."""

    def _split_scope(self, nodeid: str) -> str:
        folder, _, _ = nodeid.removeprefix("tests/").partition("/")
        return "one at a time" if folder in _ONE_AT_A_TIME else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """How two processes share the tests."""
    return _FilesApart(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first: what is simply broken is told within seconds, not after the journeys.

    Where two processes share them, one begins with those that go one at a time, the other with the fast ones.
    """
    items.sort(key=_turn)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _folder(item) not in _ONE_AT_A_TIME)


def _turn(item: pytest.Item) -> int:
    folder = _folder(item)
    return _FAST_FIRST.index(folder) if folder in _FAST_FIRST else len(_FAST_FIRST)


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[DatabaseAddress]:
    """The address of this session's server. Its database `tack` is empty; Django's test database lies beside it."""
    with temporary_postgres() as address:
        yield address


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, postgres_address: DatabaseAddress
) -> None:
    """Point Django at this session's server, before its test database is made."""
    settings.DATABASES["default"].update(postgres_address.for_django())


@pytest.fixture(scope="session", autouse=True)
def _one_chain_of_middleware() -> Iterator[None]:
    """All test clients go through the same chain, as all requests to a web process do: making one reads every file
    that is served.
    """
    made = ClientHandler()

    def take_the_made_one(handler: BaseHandler, is_async: bool = False) -> None:
        if "_middleware_chain" not in vars(made):
            made_by(made, is_async)
        vars(handler).update({name: value for name, value in vars(made).items() if name.startswith("_")})

    with pytest.MonkeyPatch.context() as patch:
        made_by = ClientHandler.load_middleware
        patch.setattr(ClientHandler, "load_middleware", take_the_made_one)
        yield


@pytest.fixture(scope="session", autouse=True)
def _tables_are_emptied_by_deleting() -> Iterator[None]:
    """After tests that commit there are few rows to delete; TRUNCATE would make a new file for each table and index."""

    def deleting(
        operations: DatabaseOperations,
        style: Any,
        tables: Sequence[str],
        *,
        reset_sequences: bool = False,
        **more: Any,
    ) -> list[str]:
        if reset_sequences:
            return truncating(operations, style, tables, reset_sequences=True, **more)
        # As a replica: in any order, and without what triggers would do.
        deletes = (f"DELETE FROM {operations.quote_name(table)}" for table in tables)  # noqa: S608 - our tables
        return ["SET LOCAL session_replication_role = replica", *deletes]

    with pytest.MonkeyPatch.context() as patch:
        truncating = DatabaseOperations.sql_flush
        patch.setattr(DatabaseOperations, "sql_flush", deleting)
        yield


@pytest.fixture
def alice() -> Actor:
    """Submits jobs, and owns the queues the factories make."""
    return people.ALICE


@pytest.fixture
def olga() -> Actor:
    """Operates everything."""
    return people.OLGA


@pytest.fixture
def bob() -> Actor:
    """Belongs to another queue."""
    return people.BOB
