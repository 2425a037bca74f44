"""How long and how much a refusal may take."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 1.0
"""Of processor time: the machine may be busy with others."""
MEBIBYTES = 200
"""Of memory beyond what was there before, for a body of at most 32 MB (its text, and a little more)."""


@contextmanager
def soon(*, seconds: float = SECONDS, mebibytes: float = MEBIBYTES) -> Iterator[None]:
    """What happens inside takes no longer, and needs no more memory."""
    began, before = time.process_time(), _peak_mebibytes()
    yield
    assert time.process_time() - began < seconds
    assert _peak_mebibytes() - before < mebibytes


def _peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
