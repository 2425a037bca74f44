"""Files under var/: written for our eyes only, and the last lines of a log."""

import contextlib
import os
from pathlib import Path

LONG_LOG_BYTES = 16 * 1024 * 1024


def write_private(path: Path, text: str) -> None:
    """Put `text` in the place of the file at once, readable by us only: no reader ever sees half of it."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text.rstrip("\n") + "\n")
    new.replace(path)


def set_aside(log: Path) -> None:
    """Begin a log anew when it has grown long; the one before it is kept as `log`.1, older ones are not."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > LONG_LOG_BYTES:
            log.replace(log.with_name(log.name + ".1"))


def last_lines(log: Path, count: int = 5) -> str:
    """What a program said last, as the end of a sentence."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if lines:
            return f"It said: {' / '.join(lines[-count:])} (all of it in {log})"
    return "It said nothing."
