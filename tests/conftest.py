"""What every test can use: a real PostgreSQL, started by the first test that asks for a database."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from lookout.addresses import DatabaseAddress
from scheduler.actors import Actor
from tests import people
from tests.postgres import temporary_postgres

# Playwright keeps an event loop in the test's thread; Django must not take that for an asynchronous view.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


_FAST_FIRST = (
    "policies",
    "conformance",
    "architecture",
    "cli",
    "scheduler",
    "api",
    "permissions",
    "hostile",
    "fuzz",
    "pages",
    "docs",
    "permissions",
    "hostile",
    "executors",
    "bootstrap",
    "journeys",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first: what is simply broken is told within seconds, not after the journeys."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return _FAST_FIRST.index(folder) if folder in _FAST_FIRST else len(_FAST_FIRST)


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
