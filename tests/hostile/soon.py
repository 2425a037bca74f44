"""How long and how much a refusal may take."""

import gc
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 1.0
"""Of processor time, on a machine that has it to itself."""
MEBIBYTES = 200
"""Of memory beyond what was there before, for a body of at most 32 MB (its text, and a little more)."""
_TURNS, _TURNS_A_SECOND = 1_000_000, 20_000_000
"""Of an empty loop: what a usual machine does. One that is shared with others does less."""


@contextmanager
def soon(*, seconds: float = SECONDS, mebibytes: float = MEBIBYTES) -> Iterator[None]:
    """What happens inside takes no longer, and needs no more memory."""
    # What earlier tests left in this process is not looked through for garbage at this one's expense.
    gc.freeze()
    began, before = time.process_time(), _peak_mebibytes()
    try:
        yield
    finally:
        took, grown = time.process_time() - began, _peak_mebibytes() - before
        gc.unfreeze()
    assert took < seconds or took < seconds * _slowness()
    assert grown < mebibytes


def _slowness() -> float:
    """How much slower than usual this machine is right now."""
    began = time.process_time()
    for _ in range(_TURNS):
        pass
    return (time.process_time() - began) / (_TURNS / _TURNS_A_SECOND)


def _peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
