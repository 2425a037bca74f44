"""What is written to the log, as the handlers of the settings write it."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_lines() -> Iterator[io.StringIO]:
    """All that is logged in the block goes here instead."""
    text = io.StringIO()
    handlers = [each for each in logging.root.handlers if type(each) is logging.StreamHandler]
    before = [handler.setStream(text) for handler in handlers]
    try:
        yield text
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            handler.setStream(stream)
