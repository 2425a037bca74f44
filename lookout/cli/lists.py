"""Jobs, runs and failures as tables: their columns, and which of these give way where a terminal has no room for all."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookout.cli.printing import NONE, age, console, fitting, one_line, span, state_text, table
from lookout.client import Client, Filters, Job, Run

_SAID_BY_EXIT = re.compile(r"^Container \S+ failed with exit code \d+ because \w+: (?=\S)")
"""What an error begins with whatever went wrong; the row above has the exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind[T: (Job, Run)]:
    """What can be listed."""

    things: str
    """In the API."""
    said: str
    """To people."""
    find: Callable[[Client, Filters, str, int | None], Iterator[T]]
    headings: tuple[str, ...]
    row: Callable[[T], list[str | Text]]
    whole: tuple[str, ...]
    """Columns that are never cut."""
    gives_way: tuple[str, ...] = ()
    """Columns that a narrow terminal does without, those it can spare best first."""
    beneath: str = ""
    """The heading of what stands on a line of its own beneath each row of a terminal, and else in a last column."""
    text: Callable[[T], str] = lambda _: ""
    """What stands there."""


def _job_row(job: Job) -> list[str | Text]:
    category = str(job.last_failure) if job.last_failure else NONE
    return [
        job.job_id,
        job.queue,
        job.job_set_id,
        state_text(job.state),
        str(job.run_count),
        category,
        age(job.submitted_at),
    ]


def _run_row(run: Run) -> list[str | Text]:
    took = span(run.ended_at - run.started_at) if run.started_at and run.ended_at else NONE
    return [
        run.job_id,
        str(run.number),
        state_text(run.state),
        run.node,
        str(run.failure or NONE),
        _exit_code(run),
        took,
        age(run.leased_at),
    ]


def _failure_row(run: Run) -> list[str | Text]:
    return [
        age(run.ended_at),
        run.job_id,
        str(run.number),
        run.queue or NONE,
        run.job_set_id or NONE,
        run.node or NONE,
        str(run.failure or NONE),
        _exit_code(run),
        run.decision.verdict if run.decision else NONE,
    ]


def _exit_code(run: Run) -> str:
    return NONE if run.exit_code is None else str(run.exit_code)


def _error(run: Run) -> str:
    message = run.error.message if run.error else ""
    return next(iter(message.splitlines()), "")


JOBS = Kind(
    things="jobs",
    said="jobs",
    find=lambda tack, filters, sort, limit: tack.find_jobs(filters, sort=sort, limit=limit),
    headings=("JOB", "QUEUE", "JOB SET", "STATE", "RUNS", "CATEGORY", "AGE"),
    row=_job_row,
    whole=("JOB", "STATE", "RUNS", "AGE"),
    gives_way=("RUNS", "QUEUE", "CATEGORY"),
)
RUNS = Kind(
    things="runs",
    said="runs",
    find=lambda tack, filters, sort, limit: tack.find_runs(filters, sort=sort, limit=limit),
    headings=("JOB", "RUN", "STATE", "NODE", "CATEGORY", "EXIT", "TOOK", "AGE"),
    row=_run_row,
    whole=("JOB", "RUN", "STATE", "EXIT", "TOOK", "AGE"),
    gives_way=("TOOK", "EXIT", "AGE"),
)
FAILURES = Kind(
    things="runs",
    said="failures",
    find=RUNS.find,
    headings=("AGE", "JOB", "RUN", "QUEUE", "JOB SET", "NODE", "CATEGORY", "EXIT", "VERDICT"),
    row=_failure_row,
    whole=("AGE", "JOB", "RUN", "CATEGORY", "EXIT", "VERDICT"),
    gives_way=("VERDICT", "JOB SET", "QUEUE", "EXIT", "NODE", "RUN"),
    beneath="ERROR",
    text=_error,
)


def print_list[T: (Job, Run)](kind: Kind[T], shown: Sequence[T]) -> None:
    """A row for each. A terminal gets the columns it has room for; programs get all, each row a line."""
    if not shown:
        click.echo(f"No {kind.said}.", err=True)
    elif sys.stdout.isatty():
        _print_on_terminal(kind, shown)
    else:
        _print_whole(kind, shown)


def _print_whole[T: (Job, Run)](kind: Kind[T], shown: Sequence[T]) -> None:
    headings = [*kind.headings, *([kind.beneath] if kind.beneath else ())]
    rows = [kind.row(each) for each in shown]
    if kind.beneath:
        for row, thing in zip(rows, shown, strict=True):
            row.append(one_line(kind.text(thing)))
    console().print(table(headings, rows, whole=kind.whole))


def _print_on_terminal[T: (Job, Run)](kind: Kind[T], shown: Sequence[T]) -> None:
    out = console()
    columns = dict(zip(kind.headings, zip(*map(kind.row, shown), strict=True), strict=True))
    widths = fitting(columns, whole=kind.whole, gives_way=kind.gives_way, width=out.width)
    rows = zip(*(columns[name] for name in widths), strict=True)
    if kind.beneath:
        made = table(list(widths), rows, whole=kind.whole, widths=widths, one_line=True)
        _print_with_text_beneath(out, made, [kind.text(each) for each in shown])
    else:
        out.print(table(list(widths), rows, whole=kind.whole))


def _print_with_text_beneath(out: Console, made: Table, texts: Sequence[str]) -> None:
    """A table of rows that are one line each, beneath each its text as far as it goes in a line."""
    with out.capture() as captured:
        out.print(made)
    head, *lines = captured.get().splitlines()
    click.echo(head)
    for line, text in zip(lines, texts, strict=True):
        click.echo(line)
        if text:
            said = Text(f"  {_SAID_BY_EXIT.sub('', one_line(text))}", style="dim")
            out.print(said, no_wrap=True, overflow="ellipsis")
