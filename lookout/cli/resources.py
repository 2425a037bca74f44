"""Files that say themselves what they are: `create -f FILE` and `apply -f FILE` for queues and retry policies."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from lookout.cli import queues, retry_policies, words
from lookout.cli.files import FileProblem, LoadedFile, load_file
from lookout.cli.printing import say
from lookout.cli.queue_files import head_of
from lookout.cli.words import Writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What can be done with a file of one kind. `check` sends nothing."""

    check: Callable[[LoadedFile], object]
    create: Callable[[LoadedFile, Writing], None]
    apply: Callable[[LoadedFile, Writing], None]


KINDS = {
    "Queue": Kind(check=queues.check, create=queues.create, apply=queues.apply),
    "RetryPolicy": Kind(check=retry_policies.check, create=retry_policies.create, apply=retry_policies.apply),
}
"""By the `kind` a file begins with."""


@click.group("create", cls=words.Group, invoke_without_command=True)
@words.file_option(required=False)
@words.note_option
@words.force_option
@words.dry_run_option
@click.pass_context
def create(context: click.Context, file: Path | None, note: str, *, force: bool, dry_run: bool) -> None:
    """Create a queue or retry policy.

    Say which by a word, or give a file whose `kind` says it.
    """
    if context.invoked_subcommand:
        if file or note or force or dry_run:
            raise click.UsageError(f"Options of files stand alone, or behind '{context.invoked_subcommand}'.")
    elif file is None:
        raise click.UsageError("Name a file with -f, or say what to create: queue or retry-policy.")
    else:
        _use(file, lambda kind: kind.create, Writing(note=note, force=force), dry_run=dry_run)


create.add_command(queues.create_command)
create.add_command(retry_policies.create_command)


@click.command("apply", cls=words.Command)
@words.file_option()
@words.note_option
@words.force_option
@words.dry_run_option
def apply(file: Path, note: str, *, force: bool, dry_run: bool) -> None:
    """Make a queue or retry policy as a file says.

    One that exists is updated, one that does not is created.
    """
    _use(file, lambda kind: kind.apply, Writing(note=note, force=force), dry_run=dry_run)


type Way = Callable[[LoadedFile, Writing], None]


def _use(path: Path, way: Callable[[Kind], Way], writing: Writing, *, dry_run: bool) -> None:
    file = load_file(path)
    kind = kind_of(file)
    if dry_run:
        kind.check(file)
        say(f"{file.name} is valid. Nothing was sent.")
    else:
        way(kind)(file, writing)


def kind_of(file: LoadedFile) -> Kind:
    """What the file's `kind` says. Raises FileRefused for any other."""
    named = head_of(file).get("kind")
    if isinstance(named, str) and named in KINDS:
        return KINDS[named]
    if (
        not named
        and isinstance(file.value, dict)
        and {"jobs", "jobsetid"} & {key.lower() for key in file.value}
    ):
        told = f"This is a job file: submit it with tack submit {file.name}."
        raise file.refused([*file.problems, FileProblem(path="", message=told)])
    choices = " or ".join(KINDS)
    told = f"This is '{named}'; it can be {choices}." if named else f"Say what this is: {choices}."
    raise file.refused([*file.problems, FileProblem(path="kind", message=told)])
