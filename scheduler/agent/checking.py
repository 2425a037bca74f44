"""Check a configuration file before anything starts with it: `python -m scheduler.agent.checking --config FILE`.

The server's keys and the agent's at once, the environment's overrides included. Prints one JSON object:
`{"problems": […], "warnings": […]}`, a sentence each.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler.agent.config import load_agent_configuration
from scheduler.config import load_configuration
from scheduler.keys import ConfigurationInvalid


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """What is to be mended, and what is legal and surprising."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def check_configuration(path: Path | None, environment: Mapping[str, str]) -> Checked:
    """Read the file as the server does, and as the agent does. What both would say is there once."""
    problems: list[str] = []
    warnings: tuple[str, ...] = ()
    try:
        warnings = load_configuration(path, environment).warnings
    except ConfigurationInvalid as error:
        problems += error.problems
    try:
        load_agent_configuration(path, environment)
    except ConfigurationInvalid as error:
        problems += error.problems
    return Checked(problems=tuple(dict.fromkeys(problems)), warnings=warnings)


def main(argv: Sequence[str] | None = None) -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description="Check a configuration file.")
    parser.add_argument("--config", type=Path, help="without one the defaults are checked")
    print(json.dumps(asdict(check_configuration(parser.parse_args(argv).config, os.environ))))  # noqa: T201


if __name__ == "__main__":
    main()
