"""The words that several kinds of things share: create, update, delete, get; and the options of every command."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lookout.cli.files import LoadedFile
from lookout.client import Client, Invalid, NotFound

_URL = "tack.url"
_TOKEN_FILE = "tack.token-file"  # noqa: S105  a name, not a secret


def _keep(key: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def keep(context: click.Context, _: click.Parameter, value: Any) -> Any:
        if value:
            context.meta[key] = value
        return value

    return keep


def address_options() -> list[click.Parameter]:
    """--url and --token-file. They may stand before or after the words of a command."""
    return [
        click.Option(
            ["--url"],
            metavar="URL",
            expose_value=False,
            callback=_keep(_URL),
            help="Address of Tack. [default: TACK_URL, else the one that runs here]",
        ),
        click.Option(
            ["--token-file"],
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False),
            expose_value=False,
            callback=_keep(_TOKEN_FILE),
            help="File with address and token. [default: TACK_TOKEN, else the one that ./tack up wrote]",
        ),
    ]


class Command(click.Command):
    """A command that can be told where Tack is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(address_options())


class Group(click.Group):
    """Words under a word, listed in the order they were added; all can be told where Tack is."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(address_options())

    def list_commands(self, _: click.Context) -> list[str]:
        """As they were added: what belongs together stands together."""
        return list(self.commands)


def client() -> Client:
    """The client the current command was told to use; it is closed when the command ends."""
    context = click.get_current_context()
    found = Client.from_environment(url=context.meta.get(_URL, ""), token_file=context.meta.get(_TOKEN_FILE))
    return context.find_root().with_resource(found)


@contextmanager
def problems_told_of(file: LoadedFile) -> Iterator[None]:
    """What Tack finds wrong with a file is told with the file's name and lines."""
    try:
        yield
    except (Invalid, NotFound) as error:
        if not error.problems:
            raise
        raise file.refused(error.problems) from error


def file_option(*, required: bool = True) -> Callable[[Any], Any]:
    """-f/--file."""
    return click.option(
        "-f",
        "--file",
        "file",
        metavar="FILE",
        required=required,
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        help="YAML or JSON; - is the standard input.",
    )


def output_option(*forms: str) -> Callable[[Any], Any]:
    """-o among these forms, the first by default."""
    return click.option(
        "-o",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Form of the output.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a retry policy is written: with a note for its history, and perhaps against what executors can do."""

    note: str = ""
    force: bool = False


note_option = click.option(
    "--note", default="", metavar="TEXT", help="Why, for the history of a retry policy."
)
force_option = click.option("--force", is_flag=True, help="Accept categories that no executor knows yet.")

dry_run_option = click.option("--dry-run", is_flag=True, help="Check the file and send nothing.")


@click.group(cls=Group)
def update() -> None:
    """Change a queue or retry policy that exists."""


@click.group(cls=Group)
def delete() -> None:
    """Delete a queue, retry policy or executor."""


@click.group(cls=Group)
def get() -> None:
    """Show jobs, runs, queues, policies or executors."""
