"""Commands for queues: create, update, delete, get; and what `create -f` and `apply -f` do with one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from lookout.cli import words
from lookout.cli.files import LoadedFile
from lookout.cli.printing import one_line, print_as, print_yaml, say, without_zeros
from lookout.cli.queue_files import API_VERSION, KIND, queue_spec
from lookout.cli.words import Writing
from lookout.client import Client, Invalid, NotFound, Problem, Queue

MOST_NAMED = 10
"""Retry policies that are offered in the place of one that does not exist."""
HEAD = {"apiVersion": API_VERSION, "kind": KIND}


def check(file: LoadedFile) -> dict[str, Any]:
    """The fields of the queue in a file. Raises FileRefused with every problem."""
    return queue_spec(file)


def create(file: LoadedFile, writing: Writing) -> None:
    """Create the queue of a file and say so."""
    _refuse_options_of_policies(writing)
    spec = queue_spec(file)
    tack = words.client()
    with words.problems_told_of(file), _policies_told_of(tack):
        tack.create_queue(spec)
    say(f"Created queue {spec['name']}")


def apply(file: LoadedFile, writing: Writing) -> None:
    """Create the queue of a file, or make it as the file says, and say which."""
    _refuse_options_of_policies(writing)
    spec = queue_spec(file)
    tack = words.client()
    with words.problems_told_of(file), _policies_told_of(tack):
        try:
            tack.update_queue(spec["name"], spec)
            done = "Updated"
        except NotFound:
            tack.create_queue(spec)
            done = "Created"
    say(f"{done} queue {spec['name']}")


@contextmanager
def _policies_told_of(tack: Client) -> Iterator[None]:
    """Where retry policies are named that do not exist, what can be done is told with it."""
    try:
        yield
    except Invalid as error:
        if not any(map(_names_strange_policies, error.problems)):
            raise
        names = ", ".join(policy.name for policy in tack.retry_policies()[:MOST_NAMED])
        choice = f", or choose from {names}" if names else ""
        fix = f". Create them first with tack create -f FILE{choice}."
        raise Invalid(
            status=error.status,
            code=error.code,
            message=f"{error}{fix}",
            problems=tuple(
                replace(each, message=f"{each.message}{fix}") if _names_strange_policies(each) else each
                for each in error.problems
            ),
        ) from error


def _names_strange_policies(problem: Problem) -> bool:
    return problem.path == "retryPolicies" and problem.message.startswith("retry policies do not exist")


def _refuse_options_of_policies(writing: Writing) -> None:
    if writing != Writing():
        raise click.UsageError("--note and --force are for retry policies; this file holds a queue.")


def fields_of(queue: Queue) -> dict[str, Any]:
    """The queue as `create -f` takes it, without what is zero."""
    fields = {
        "name": queue.name,
        "priorityFactor": queue.priority_factor,
        "userOwners": queue.user_owners,
        "groupOwners": queue.group_owners,
        "permissions": queue.permissions,
        "cordoned": queue.cordoned,
        "labels": queue.labels,
        "retryPolicies": queue.retry_policies,
    }
    kept: dict[str, Any] = without_zeros(fields)
    return kept


def _names(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """Names with commas between them; the option may come again."""
    return [name.strip() for part in value for name in part.split(",") if name.strip()]


def _labels(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for pair in _names(context, option, value):
        key, _, text = pair.partition("=")
        if not key or not text:
            raise click.BadParameter(f"'{pair}' is not of the form key=value.")
        labels[key] = text
    return labels


def _spec_options(command: Callable[..., None]) -> Callable[..., None]:
    several: Any = {"multiple": True, "callback": _names, "metavar": "A,B"}
    options = [
        click.option(
            "--priority-factor",
            type=float,
            default=1.0,
            show_default=True,
            help="A queue with twice the factor gets half as much.",
        ),
        click.option("--owners", **several, help="Users who own the queue."),
        click.option("--group-owners", **several, help="Groups who own the queue."),
        click.option(
            "--cordon/--no-cordon", default=False, help="Whether its jobs have to wait.  [default: no-cordon]"
        ),
        click.option(
            "--labels", "-l", multiple=True, callback=_labels, metavar="KEY=VALUE,…", help="Labels."
        ),
        click.option("--retry-policies", **several, help="Retry policies, in the order they count."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _spec(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "priorityFactor": options["priority_factor"],
        "userOwners": options["owners"],
        "groupOwners": options["group_owners"],
        "cordoned": options["cordon"],
        "labels": options["labels"],
        "retryPolicies": options["retry_policies"],
    }


@click.command("queue", cls=words.Command)
@click.argument("name")
@_spec_options
def create_command(name: str, **options: Any) -> None:
    """Create a queue."""
    tack = words.client()
    with _policies_told_of(tack):
        tack.create_queue(_spec(name, options))
    say(f"Created queue {name}")


@words.update.command("queue")
@click.argument("name")
@_spec_options
def update_command(name: str, **options: Any) -> None:
    """Replace what a queue says. What is not given goes back to its default."""
    tack = words.client()
    with _policies_told_of(tack):
        tack.update_queue(name, _spec(name, options))
    say(f"Updated queue {name}")


@words.delete.command("queue")
@click.argument("name")
def delete_command(name: str) -> None:
    """Delete a queue that never had a job: jobs are kept. Cordon another."""
    words.client().delete_queue(name)
    say(f"Deleted queue {name} (or it did not exist)")


@words.get.command("queue")
@click.argument("name")
@words.output_option("yaml", "json")
def get_command(name: str, form: str) -> None:
    """Print a queue as a document that `create -f` takes."""
    queue = words.client().queue(name)
    print_as(form, HEAD | fields_of(queue))
    _tell_of_cordons([queue])


@words.get.command("queues")
@click.argument("names", nargs=-1)
@click.option(
    "--match-labels",
    "-l",
    multiple=True,
    callback=_names,
    metavar="KEY[=VALUE],…",
    help="Only with all these.",
)
@click.option("--inverse", is_flag=True, help="Those that the rest does not choose.")
@click.option("--only-cordoned", is_flag=True, help="Only cordoned ones.")
@words.output_option("yaml", "json")
def list_command(names: tuple[str, ...], match_labels: list[str], form: str, **only: bool) -> None:
    """Print queues: all, or those named, labelled, cordoned."""
    chosen = [
        queue
        for queue in words.client().queues()
        if is_chosen(queue, names=names, labels=match_labels, only_cordoned=only["only_cordoned"])
        != only["inverse"]
    ]
    documents = [fields_of(queue) for queue in chosen]
    if form == "json":
        print_as(form, HEAD | {"queues": documents})
    else:
        print_yaml(HEAD)
        click.echo("---")
        print_yaml(documents)
    _tell_of_cordons(chosen)


def _tell_of_cordons(queues: Sequence[Queue]) -> None:
    """Who closed which and why, beside what is printed for programs."""
    for queue in queues:
        if queue.cordoned and queue.cordoned_by:
            why = f": {queue.cordon_reason}" if queue.cordon_reason else ""
            say(one_line(f"Queue {queue.name} is cordoned by {queue.cordoned_by}{why}"), err=True)


def is_chosen(queue: Queue, *, names: tuple[str, ...], labels: list[str], only_cordoned: bool) -> bool:
    """Named if any are, carrying every label (a key alone stands for any value), cordoned if asked for."""
    carried = {*queue.labels, *(f"{key}={value}" for key, value in queue.labels.items())}
    return (
        (not names or queue.name in names)
        and carried.issuperset(labels)
        and (queue.cordoned or not only_cordoned)
    )
