"""What the tests of the API share."""

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from lookout.api.executor.bell import WORK_BELL


@pytest.fixture(autouse=True)
def _nothing_left_over() -> Iterator[None]:
    """Counters of throttles and the listener of bells do not outlive a test."""
    cache.clear()
    yield
    WORK_BELL.close()
