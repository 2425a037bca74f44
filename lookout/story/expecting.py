"""Steps of a check: each is said with the time it took, and what is not as promised breaks it off."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class CheckFailed(RuntimeError):
    """Something is not as the story promises."""


@contextmanager
def step(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"ok  {time.monotonic() - started:6.1f} s  {what}", flush=True)


def expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise CheckFailed(otherwise)


def equal(what: str, found: object, wanted: object) -> None:
    expect(found == wanted, f"{what[0].upper()}{what[1:]} should be {wanted}; found {found}.")
