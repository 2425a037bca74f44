"""`get jobs`, `get runs`, `get failures`: what a filter means, as a table or for programs."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click

from lookout.cli import words
from lookout.cli.filters import FAILED, JOB_SORTS, RUN_SORTS, RUN_STATES, Option, of_jobs, of_runs, wanted
from lookout.cli.lists import FAILURES, JOBS, RUNS, Kind, print_list
from lookout.cli.printing import plain, print_as, print_json_line, say
from lookout.client import Filters, Job, Run

SHOWN = 50
"""So many, unless told otherwise."""
FORMS = ("table", "json", "jsonl", "csv", "yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which of them, how many, and in what form."""

    filters: Filters
    sort: str
    limit: int | None
    form: str


def _listing(keys: Sequence[str], example: str, *, otherwise: str) -> Option:
    """The filters of the address, and how they are answered. `keys` are what can be sorted by."""

    def listing(command: Callable[..., None]) -> Callable[..., None]:
        options = [
            click.argument("filters", nargs=-1, metavar="[FILTER]…"),
            click.option(
                "--sort",
                default="",
                metavar="KEYS",
                help=f"By one or two of {', '.join(keys)}, - before one for the other way: {example}. [default: {otherwise}]",
            ),
            click.option(
                "--limit",
                type=click.IntRange(min=1, max=1_000_000_000),
                help=f"At most so many. [default: {SHOWN}; with csv and jsonl all]",
            ),
            words.output_option(*FORMS),
        ]
        for option in reversed(options):
            command = option(command)
        return command

    return listing


@words.get.command("jobs")
@_listing(JOB_SORTS, "queue,-submitted", otherwise="newest first")
@of_jobs
def jobs_command(filters: tuple[str, ...], sort: str, limit: int | None, form: str, **named: Any) -> None:
    """Show jobs, newest first.

    A FILTER is a field and what it shall be, as in the address of the jobs page: queue=nightly 'retries>1'
    'node.last!=gpu-07', or several in one: 'queue=nightly&state=failed'. Repeated, either value will do.
    docs/reference/filters.md lists them all.
    """
    _show(JOBS, Asked(filters=wanted(filters, named), sort=sort, limit=limit, form=form))


@words.get.command("runs")
@_listing(RUN_SORTS, "node,-coreSeconds", otherwise="newest first")
@of_runs(RUN_STATES)
def runs_command(filters: tuple[str, ...], sort: str, limit: int | None, form: str, **named: Any) -> None:
    """Show runs, newest first.

    A FILTER is a field of a run and what it shall be: node=gpu-07 'exitCode>128' job=ID.
    docs/reference/filters.md lists them all.
    """
    _show(RUNS, Asked(filters=wanted(filters, named), sort=sort, limit=limit, form=form))


@words.get.command("failures")
@_listing(RUN_SORTS, "node,-finished", otherwise="the last first")
@of_runs(FAILED)
def failures_command(filters: tuple[str, ...], sort: str, limit: int | None, form: str, **named: Any) -> None:
    """Show runs that failed, the last first.

    A FILTER is a field of a run and what it shall be: queue=nightly category=oom 'finished>=-12h'.
    docs/reference/filters.md lists them all.
    """
    asked = {"state": list(FAILED), **wanted(filters, named)}
    _show(FAILURES, Asked(filters=asked, sort=sort or "-finished", limit=limit, form=form))


def _show[T: (Job, Run)](kind: Kind[T], asked: Asked) -> None:
    if asked.form in ("csv", "jsonl"):
        _print_export(kind, asked)
        return
    limit = asked.limit or SHOWN
    found = list(islice(kind.find(words.client(), asked.filters, asked.sort, limit + 1), limit + 1))
    shown = found[:limit]
    if asked.form == "table":
        print_list(kind, shown)
    else:
        print_as(asked.form, {kind.things: [each.json for each in shown]})
    if len(found) > limit:
        these = "this one" if limit == 1 else f"these {limit:,}"
        say(f"There are more than {these}: --limit shows more, filters fewer.", err=True)


def _print_export[T: (Job, Run)](kind: Kind[T], asked: Asked) -> None:
    """As it comes: however much it is, only a piece of it is held."""
    pieces = words.client().export(
        kind.things, asked.filters, form=asked.form, sort=asked.sort, limit=asked.limit
    )
    for piece in pieces:
        if asked.form == "jsonl":
            print_json_line(piece)
        else:
            click.echo(plain(piece) if sys.stdout.isatty() else piece, nl=False)
