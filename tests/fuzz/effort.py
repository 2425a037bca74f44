"""How much is tried: little in every run of the tests, as much as wanted by hand."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings

TIMES = int(os.environ.get("TACK_FUZZ") or 1)
"""TACK_FUZZ: how many times the usual number of examples. By hand, an hour is about 200."""


def tried[F: Callable[..., Any]](examples: int) -> Callable[[F], F]:
    """Decorates a property that is tried with so many examples in a usual run."""
    more: Callable[[F], F] = settings(
        max_examples=examples * TIMES,
        deadline=None,  # what must be soon says so itself
        database=None,
        derandomize=TIMES == 1,  # a usual run is the same for everybody; by hand it is another each time
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    patient: Callable[[F], F] = pytest.mark.timeout(180 * TIMES)
    return lambda test: patient(more(test))


@contextmanager
def undone() -> Iterator[None]:
    """What happens inside is taken back, so that a later example finds what the first one found."""
    before = transaction.savepoint_create()
    try:
        yield
    finally:
        transaction.savepoint_rollback(before)
