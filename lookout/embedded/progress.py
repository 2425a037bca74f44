"""What a person sees while Tack starts and stops: one line a step, with its seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(what: str) -> Iterator[None]:
    """Show `what` while the block runs; when it is through, the same line with the seconds it took."""
    started = time.monotonic()
    if sys.stdout.isatty():
        tell(f"  {what} ...", end="\r")
    yield
    tell(f"  {what:<44}{time.monotonic() - started:5.1f} s")


def tell(sentence: str = "", *, end: str = "\n") -> None:
    """A line for the person at the terminal. One who has hung up is no reason to stop."""
    try:
        print(sentence, end=end, flush=True)
    except OSError:
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115, PTH123 - for the rest of this process
