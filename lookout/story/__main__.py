"""`tack demo`: tell the out-of-memory story on the Tack that runs here, or on the one TACK_URL names."""

import argparse
import sys
from pathlib import Path

from lookout.client import Client, TackError
from lookout.story.command_line import CommandFailed, CommandLine
from lookout.story.telling import StoryBroke, Teller


def main(arguments: list[str]) -> int:
    """The exit code: 0 when the story ended well."""
    parser = argparse.ArgumentParser(
        prog="tack demo",
        description="Tell the out-of-memory story on a Tack that runs: a policy, a queue, a job.",
    )
    parser.add_argument("--told-file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        with Client.from_environment() as client:
            Teller(tack=CommandLine(), client=client, say=lambda line: print(line, flush=True)).tell()
    except (TackError, CommandFailed, StoryBroke) as error:
        print(f"tack: the story broke off. {error}", file=sys.stderr)
        return 1
    if options.told_file:
        options.told_file.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
