"""The end of a web process: long answers look here, so that none holds it up."""

import signal
import threading
import time
from types import FrameType

from django.db import connection

SLICE_SECONDS = 0.2
_closing = False


def watch_sigterm() -> None:
    """From now on SIGTERM ends long answers, before whatever handled it handles it.

    Does nothing in other threads than the main one, where signals cannot be handled.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)

    def close(number: int, frame: FrameType | None) -> None:
        close_now()
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, close)


def close_now(*, closing: bool = True) -> None:
    """End long answers. A plain name is set, because a signal handler must not wait for a lock."""
    global _closing
    _closing = closing


def is_closing() -> bool:
    """Whether long answers should end."""
    return _closing


def pause(seconds: float) -> bool:
    """Wait so long, or until this process closes; whether to go on. Holds no database connection meanwhile."""
    let_go()
    end = time.monotonic() + seconds
    while not _closing and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, SLICE_SECONDS))
    return not _closing


def let_go() -> None:
    """Give the database connection back while nothing is asked of it."""
    if not connection.in_atomic_block:
        connection.close()
