"""Verbs that work in batches: asked again until nothing is left, or for as long as a request may take."""

import time
from collections.abc import Callable
from typing import Protocol

PATIENCE_SECONDS = 5.0
"""After so long a request answers with what was done, and that there is more."""


class Batch(Protocol):
    """What one call of such a verb did."""

    @property
    def more(self) -> bool:
        """There may be others: ask again."""


def until_done[T: Batch](step: Callable[[], T], *, patience_seconds: float = PATIENCE_SECONDS) -> list[T]:
    """What each call did, in their order; the last says whether there is more."""
    ends = time.monotonic() + patience_seconds
    done = [step()]
    while done[-1].more and time.monotonic() < ends:
        done.append(step())
    return done
