"""Files under var/: written for our eyes only, and the last lines of a log."""

import contextlib
import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Put `text` in the place of the file at once, readable by us only: no reader ever sees half of it."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text.rstrip("\n") + "\n")
    new.replace(path)


def last_lines(log: Path, count: int = 5) -> str:
    """What a program said last, as the end of a sentence."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if lines:
            return f"It said: {' / '.join(lines[-count:])} (all of it in {log})"
    return "It said nothing."
