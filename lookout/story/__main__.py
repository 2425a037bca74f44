"""`tack demo`: tell the stories on the Tack that runs here, or on the one TACK_URL names."""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from lookout.client import Client, TackError
from lookout.story import disk, lost_agent
from lookout.story.command_line import CommandFailed, CommandLine
from lookout.story.narrating import Narrator, StoryBroke
from lookout.story.second_agent import NoSecondAgent, second_agent
from lookout.story.telling import Teller


def _tell_of_the_lost_agent(narrator: Narrator) -> None:
    try:
        with second_agent(narrator.client.url) as agent:
            lost_agent.tell(narrator, agent)
        lost_agent.clear_up(narrator)
    except NoSecondAgent as reason:
        narrator.say(f"The story of the lost agent is not told here. {reason}")


STORIES: Mapping[str, Callable[[Narrator], object]] = {
    "memory": lambda narrator: Teller(narrator).tell(),
    "disk": disk.tell,
    "agent": _tell_of_the_lost_agent,
}


def main(arguments: list[str]) -> int:
    """The exit code: 0 when the stories ended well."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    narrator = None
    try:
        with Client.from_environment() as client:
            narrator = Narrator(tack=CommandLine(), client=client, say=lambda line: print(line, flush=True))
            for name in options.stories or STORIES:
                STORIES[name](narrator)
                narrator.say("")
    except (TackError, CommandFailed, StoryBroke) as error:
        changed = narrator.broken_by_a_change() if narrator else ""
        print(f"tack: the story broke off. {error} {changed}".rstrip(), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.told_file:
        options.told_file.touch()
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tack demo",
        description="Tell stories on a Tack that runs: a job that needs more memory, a bad disk, a lost agent.",
    )
    parser.add_argument(
        "stories",
        nargs="*",
        metavar="|".join(STORIES),
        help="which, in what order; without any, all of them",
    )
    parser.add_argument("--told-file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.stories if name not in STORIES]:
        parser.error(f"there is no story {unknown[0]!r}: {', '.join(STORIES)}")
    return options


def _as_ctrl_c(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
