"""Browsers of the people of the stories, without a browser."""

import pytest
from django.test import Client

from lookout.access import ensure_person
from scheduler.actors import Role

HTMX = {"HX-Request": "true"}
"""What htmx sends along when it asks for a part."""


def signed_in(name: str, role: Role, groups: list[str] | None = None) -> Client:
    """The browser of somebody who is signed in."""
    client = Client()
    client.force_login(ensure_person(name, role=role, groups=groups or []))
    return client


@pytest.fixture
def as_olga(db: None) -> Client:
    """Olga operates everything."""
    return signed_in("olga", Role.OPERATOR)


@pytest.fixture
def as_alice(db: None) -> Client:
    """Alice owns the queues the factories make."""
    return signed_in("alice", Role.SUBMITTER)


@pytest.fixture
def as_bob(db: None) -> Client:
    """Bob only reads here."""
    return signed_in("bob", Role.READER)
