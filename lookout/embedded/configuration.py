"""The configuration file of one Tack: written by the first start, and checked before anything starts with it."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from lookout.embedded.children import run
from lookout.embedded.files import write_private
from lookout.embedded.folders import Folders, StartRefused
from lookout.embedded.services import CHECKOUT

_FIRST = Path(__file__).with_name("tack.yaml")


class ConfigurationRefused(StartRefused):
    """The configuration cannot be used. Each problem is a sentence with its fix."""

    def __init__(self, path: Path, problems: Iterable[str]) -> None:
        super().__init__("\n  ".join([f"The configuration {path} cannot be used:", *problems]))


def checked_configuration(folders: Folders) -> tuple[str, ...]:
    """Write the file where there is none; what is legal in it and surprising. Raises ConfigurationRefused.

    Server and agent are both asked, each in its way of reading; a process of its own, as we know neither.
    """
    if not folders.configuration.exists():
        write_private(folders.configuration, _FIRST.read_text())
    path = folders.configuration_in_use
    command = [sys.executable, "-P", "-m", "scheduler.agent.checking", "--config", str(path)]
    done = run(command, env={**os.environ, "PYTHONPATH": str(CHECKOUT)})
    if done.returncode != 0:
        raise ConfigurationRefused(path, done.stderr.strip().splitlines()[-1:])
    found = json.loads(done.stdout)
    if found["problems"]:
        raise ConfigurationRefused(path, found["problems"])
    return tuple(found["warnings"])
