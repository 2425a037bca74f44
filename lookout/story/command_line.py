"""The program `tack`, called as a person calls it: words in, lines out."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent


class CommandFailed(RuntimeError):
    """A `tack` command did not do what the story needs; the sentence ends with what it said."""

    def __init__(self, words: tuple[str, ...], said: str) -> None:
        super().__init__(f"`tack {' '.join(words)}` failed: {said.strip() or 'it said nothing'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """`tack` with an environment."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __call__(self, *words: str) -> str:
        """What `tack WORDS` prints. Raises CommandFailed."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "lookout.cli", *words],
            env={**self.environment, "PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode != 0:
            raise CommandFailed(words, done.stderr or done.stdout)
        return done.stdout.strip()
