"""`get jobs`, `get runs`, `get failures`: what a filter means, as a table or for programs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click

from lookout.cli import words
from lookout.cli.lists import FAILURES, JOBS, RUNS, Kind, print_list
from lookout.cli.printing import plain, print_as, print_json_line, say
from lookout.client import Filters, Job, Run, filters_in

JOB_STATES = (
    "queued", "leased", "pending", "running", "cancelling", "succeeded", "failed", "cancelled", "preempted",
    "rejected",
)  # fmt: skip
FAILED = ("failed", "lease_expired")
"""States of runs that failed."""
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


def _listing(order: str, *, otherwise: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The filters of the address, and how they are answered. `order` is one that may be asked for."""

    def listing(command: Callable[..., None]) -> Callable[..., None]:
        options = [
            click.argument("filters", nargs=-1, metavar="[FILTER]…"),
            click.option(
                "--sort",
                default="",
                metavar="KEYS",
                help=f"In an order such as {order}. [default: {otherwise}]",
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


_NAMES = {"job_set": "jobSet", "category_any": "category.any", "category_last": "category.last"}
"""Options whose filter has another name."""


def _named(command: Callable[..., None]) -> Callable[..., None]:
    """Options for what is asked most."""
    options = [
        click.option("--queue", multiple=True, metavar="NAME", help="In this queue."),
        click.option("--state", multiple=True, type=click.Choice(JOB_STATES), help="In this state."),
        click.option("--job-set", multiple=True, metavar="ID", help="Of this job set."),
        click.option(
            "--category-any",
            multiple=True,
            metavar="CATEGORY",
            help="It failed of it at some time: oom, or oom/limit.",
        ),
        click.option(
            "--category-last",
            multiple=True,
            metavar="CATEGORY",
            help="The last failure was of it.",
        ),
        click.option("--text", default="", metavar="TEXT", help="In the name of the job set or the owner."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@words.get.command("jobs")
@_listing("queue,-submitted", otherwise="newest first")
@_named
def jobs_command(filters: tuple[str, ...], sort: str, limit: int | None, form: str, **named: Any) -> None:
    """Show jobs, newest first.

    A FILTER is a field and what it shall be, as in the address of the jobs page: queue=nightly 'retries>1'
    'node.last!=gpu-07'. Repeated, either value will do.
    """
    wanted = filters_in(filters)
    for option, values in named.items():
        given = [values] if isinstance(values, str) else list(values)
        if any(given):
            wanted.setdefault(_NAMES.get(option, option), []).extend(given)
    _show(JOBS, Asked(filters=wanted, sort=sort, limit=limit, form=form))


@words.get.command("runs")
@_listing("node,-coreSeconds", otherwise="newest first")
def runs_command(filters: tuple[str, ...], sort: str, limit: int | None, form: str) -> None:
    """Show runs, newest first.

    A FILTER is a field of a run and what it shall be: node=gpu-07 'exitCode>128' job=ID.
    """
    _show(RUNS, Asked(filters=filters_in(filters), sort=sort, limit=limit, form=form))


@words.get.command("failures")
@_listing("node,-finished", otherwise="the last first")
def failures_command(filters: tuple[str, ...], sort: str, limit: int | None, form: str) -> None:
    """Show runs that failed, the last first.

    A FILTER is a field of a run and what it shall be: queue=nightly category=oom 'finished>=-12h'.
    """
    wanted = {"state": list(FAILED), **filters_in(filters)}
    _show(FAILURES, Asked(filters=wanted, sort=sort or "-finished", limit=limit, form=form))


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
