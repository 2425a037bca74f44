"""The program `tack`: its words, its exit codes, and how errors are told."""

import io
import os
import sys
from collections.abc import Sequence

import click

from lookout.cli import (
    cordons,
    executors,
    history,
    job_page,
    jobs,
    life,
    login,
    queues,
    resources,
    retry_policies,
    watch,
    words,
)
from lookout.cli.printing import plain, say
from lookout.client import NotSignedIn, Problem, Refused, TackError

__all__ = ["main", "tack"]

VERSION = "0.1.0"

# These register their commands with the words they share.
_REGISTERED = (history, executors, job_page, queues, retry_policies)

ELSEWHERE = {
    "up": "Set up and start everything.",
    "demo": "Tell the stories again: memory, disk, agent.",
    "agent": "Join an executor to a scheduler.",
    "person": "Make a person and let them in (on the server).",
    "token": "List, make and revoke tokens (on the server).",
    "retention": "Remove what is older than it is to be kept (on the server).",
    "manage": "Run a command of the server, such as migrate.",
    "test": "Run the tests.",
    "bench": "Run a benchmark.",
}
"""Words that `./tack` hands to programs of their own; they are here to be seen in the help."""


@click.group(
    cls=words.Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(VERSION, prog_name="tack", message="%(prog)s %(version)s")
def tack() -> None:
    """Batch jobs that are retried by policy: queues, retry policies, jobs, their runs and why each ran again."""


def _elsewhere(word: str, told: str) -> click.Command:
    @click.command(word, help=told, context_settings={"ignore_unknown_options": True}, add_help_option=False)
    @click.argument("rest", nargs=-1)
    def command(rest: tuple[str, ...]) -> None:
        raise StartedElsewhere(word)

    return command


class StartedElsewhere(click.ClickException):
    """A word of `./tack` was said to this program."""

    exit_code = 2

    def __init__(self, word: str) -> None:
        super().__init__(f"'{word}' is started as ./tack {word}, in the folder of Tack.")


for _command in (
    *(_elsewhere(word, told) for word, told in ELSEWHERE.items()),
    login.login,
    resources.create,
    resources.apply,
    words.update,
    words.delete,
    words.get,
    jobs.submit,
    life.cancel,
    life.reprioritize,
    life.preempt,
    cordons.cordon,
    cordons.uncordon,
    watch.watch,
):
    tack.add_command(_command)


def main(arguments: Sequence[str]) -> int:
    """Run one command. 0: done; 1: refused or failed; 2: not a command; 130: interrupted; others: see the command."""
    try:
        code = tack.main(list(arguments), prog_name="tack", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except TackError as error:
        _tell(error)
        return 1
    except BrokenPipeError:
        # Whoever reads us has seen enough. Without this Python complains about the rest when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _show(error: click.ClickException) -> None:
    told = io.StringIO()
    error.show(file=told)
    click.echo(plain(told.getvalue()), err=True, nl=False)


def _tell(error: TackError) -> None:
    say(f"Error: {error}", err=True)
    for problem in _untold(error) if isinstance(error, Refused) else ():
        say(f"  {problem}", err=True)
    if isinstance(error, NotSignedIn):
        click.echo("Name a token with TACK_TOKEN or --token-file.", err=True)


def _untold(error: Refused) -> list[str]:
    """The problems that the sentence does not tell already."""
    if len(error.problems) == 1 and error.problems[0].message in str(error):
        return []
    return [told for told in map(_told, error.problems) if told not in str(error)]


def _told(problem: Problem) -> str:
    """Problems of filters name the field themselves."""
    name = problem.path.rstrip("!^*?<>")
    names_it = name and (problem.message.startswith(f"{name} ") or f"'{name}'" in problem.message)
    return problem.message if names_it else str(problem)
