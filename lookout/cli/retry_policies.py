"""Commands for retry policies: create, update, delete, get; and what `create -f` and `apply -f` do with one."""

from pathlib import Path
from typing import Any

import click

from lookout.cli import words
from lookout.cli.files import LoadedFile, load_file
from lookout.cli.printing import print_as, say, without_zeros
from lookout.cli.words import Writing
from lookout.client import Client, Conflict, NotFound, RetryPolicy
from policies.documents import API_VERSION, KIND, DocumentInvalid, parse_policy_document
from policies.policy import Policy


def check(file: LoadedFile) -> Policy:
    """The policy in a file, read here and strictly. Raises FileRefused with every problem."""
    try:
        return parse_policy_document(file.text)
    except DocumentInvalid as error:
        raise file.refused(error.problems) from error


def create(file: LoadedFile, writing: Writing) -> None:
    """Create the policy of a file and say so."""
    policy = check(file)
    with words.problems_told_of(file):
        written = words.client().create_retry_policy(file.text, note=writing.note, force=writing.force)
    say(f"Created retry policy {policy.name}")
    _tell(written)


def update(file: LoadedFile, writing: Writing) -> None:
    """Give the policy of a file a new version and say so, or that it is the current one."""
    policy = check(file)
    tack = words.client()
    before = _current(tack, policy.name)
    with words.problems_told_of(file):
        after = tack.update_retry_policy(policy.name, file.text, note=writing.note, force=writing.force)
    _tell_of_writing(before, after, "Updated")


def apply(file: LoadedFile, writing: Writing) -> None:
    """Create the policy of a file or give it a new version, and say which."""
    policy = check(file)
    tack = words.client()
    before = _current(tack, policy.name)
    with words.problems_told_of(file):
        after = tack.apply_retry_policy(file.text, note=writing.note, force=writing.force)
    _tell_of_writing(before, after, "Updated" if before else "Created")


def _tell_of_writing(before: RetryPolicy | None, after: RetryPolicy, done: str) -> None:
    if before and before.version == after.version:
        say(f"Retry policy {after.name} is as in the file already")
    else:
        say(f"{done} retry policy {after.name}")
    _tell(after)


def _tell(*policies: RetryPolicy) -> None:
    """What the executors heard of say to the policies, beside what is printed for programs."""
    for policy in policies:
        for kind, said in (("Problem", policy.problems), ("Warning", policy.warnings)):
            for problem in said:
                say(f"{kind} of retry policy {policy.name}: {problem}", err=True)


def _current(tack: Client, name: str) -> RetryPolicy | None:
    try:
        return tack.retry_policy(name)
    except NotFound:
        return None


def _document(policy: RetryPolicy) -> dict[str, Any]:
    """The document as `create -f` takes it, without what is zero."""
    return {"apiVersion": API_VERSION, "kind": KIND, **without_zeros(policy.policy)}


def _fields(policy: RetryPolicy) -> dict[str, Any]:
    return {name: value for name, value in _document(policy).items() if name not in ("apiVersion", "kind")}


@click.command("retry-policy", cls=words.Command)
@words.file_option()
@words.note_option
@words.force_option
@words.dry_run_option
def create_command(file: Path, note: str, *, force: bool, dry_run: bool) -> None:
    """Create the retry policy in a file."""
    loaded = load_file(file)
    if dry_run:
        check(loaded)
        say(f"{loaded.name} is valid. Nothing was sent.")
    else:
        create(loaded, Writing(note=note, force=force))


@words.update.command("retry-policy")
@words.file_option()
@words.note_option
@words.force_option
def update_command(file: Path, note: str, *, force: bool) -> None:
    """Replace a retry policy by the one in a file, as its next version."""
    update(load_file(file), Writing(note=note, force=force))


@words.delete.command("retry-policy")
@click.argument("name")
@click.option("--detach", is_flag=True, help="Take it off the queues that use it first.")
def delete_command(name: str, *, detach: bool) -> None:
    """Delete a retry policy. Refused while queues use it, unless detached."""
    try:
        words.client().delete_retry_policy(name, detach=detach)
    except Conflict as error:
        raise click.ClickException(f"{error} --detach does both at once.") from error
    say(f"Deleted retry policy {name} (or it did not exist)")


@words.get.command("retry-policy")
@click.argument("name")
@words.output_option("yaml", "json")
def get_command(name: str, form: str) -> None:
    """Print a retry policy as a document that `create -f` takes."""
    policy = words.client().retry_policy(name)
    print_as(form, _document(policy))
    _tell(policy)


@words.get.command("retry-policies")
@words.output_option("yaml", "json")
def list_command(form: str) -> None:
    """Print all retry policies."""
    policies = words.client().retry_policies()
    documents = [_fields(policy) for policy in policies]
    print_as(form, {"apiVersion": API_VERSION, "kind": KIND, "retryPolicies": documents})
    _tell(*policies)
