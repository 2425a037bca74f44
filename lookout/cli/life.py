"""Commands that change jobs: cancel, reprioritize, preempt; by id, by where the jobs are, or by a filter."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from lookout.cli import words
from lookout.cli.printing import say
from lookout.client import JobSelection, filters_of_address

MOST_TOLD = 10_000
"""Ids of jobs that were left alone, in one answer."""
STATES = ("queued", "leased", "pending", "running")
"""States of jobs that something can be asked of."""


def _several(choices: Sequence[str] = ()) -> Any:
    """Names with commas between them; the option may come again."""

    def read(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(name.strip() for part in value for name in part.split(",") if name.strip())
        for name in names:
            if choices and name not in choices:
                raise click.BadParameter(f"'{name}' is none of {', '.join(choices)}.")
        return names

    return read


def _chosen(command: Callable[..., None]) -> Callable[..., None]:
    """Jobs by id, or the options that say which they are; the command gets them as `options`."""
    options = [
        click.argument("ids", nargs=-1, metavar="[JOB]…"),
        click.option("--queue", default="", metavar="NAME", help="All jobs of this queue."),
        click.option("--job-set", default="", metavar="ID", help="Those of this job set of the queue."),
        click.option("--executor", default="", metavar="NAME", help="All jobs that run on this executor."),
        click.option("--node", default="", metavar="NAME", help="Those on this node of the executor."),
        click.option(
            "--job-states",
            multiple=True,
            callback=_several(STATES),
            metavar="A,B",
            help=f"Only in these states: {', '.join(STATES)}.",
        ),
        click.option(
            "--priority-classes",
            multiple=True,
            callback=_several(),
            metavar="A,B",
            help="Only of these priority classes.",
        ),
        click.option(
            "--filter",
            "filters",
            multiple=True,
            metavar="FILTER",
            help="All jobs of this filter, as the address of the list of jobs has it: 'queue=nightly&category.any=oom'.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _jobs(ids: tuple[str, ...], options: dict[str, Any]) -> Sequence[str] | JobSelection:
    if not all(text.strip() for text in options["filters"]):
        raise click.UsageError("The filter is empty. Leave it out, or say which jobs are meant.")
    selection = JobSelection(
        queue=options["queue"],
        job_set_id=options["job_set"],
        executor=options["executor"],
        node=options["node"],
        states=options["job_states"],
        priority_classes=options["priority_classes"],
        filters=filters_of_address("&".join(options["filters"])),
    )
    if bool(ids) == bool(selection.json):
        raise click.UsageError(
            "Name jobs, or say which they are with --queue, --executor or --filter: one of the two."
        )
    return ids or selection


def _tell(jobs: Sequence[str] | JobSelection, done: dict[str, tuple[str, ...]]) -> None:
    """One line for each job that was named; of a selection, how many there were. `done` has the word for each."""
    for told, ids in done.items():
        if isinstance(jobs, JobSelection):
            say(f"{told} {len(ids):,} {'job' if len(ids) == 1 else 'jobs'}") if ids else None
        else:
            for job in ids:
                say(f"{told} job {job}")


def _tell_of_none(jobs: Sequence[str] | JobSelection, *done: tuple[str, ...], why: str) -> None:
    """Why nothing was done to a selection, where that is so."""
    if isinstance(jobs, JobSelection) and not any(done):
        say(f"Nothing to do: {why}.")


@click.command("cancel", cls=words.Command)
@_chosen
@click.option("--reason", default="", metavar="TEXT", help="Why, for the history of the jobs.")
def cancel(ids: tuple[str, ...], reason: str, **options: Any) -> None:
    """Cancel jobs. Those that run are asked to end and get their grace period."""
    tack, jobs = words.client(), _jobs(ids, options)
    done = tack.cancel_jobs(jobs, reason=reason)
    _tell(jobs, {"Cancelled": done.cancelled, "Requested cancellation of": done.cancelling})
    none = "no such job is queued, leased, pending or running"
    _tell_of_none(jobs, done.cancelled, done.cancelling, why=none)
    for job in done.unchanged:
        state = tack.job(job).state
        had = "was being cancelled already" if state == "cancelling" else f"had ended already: {state}"
        say(f"Job {job} {had}")


@click.command("reprioritize", cls=words.Command)
@_chosen
@click.option(
    "--priority",
    type=click.IntRange(min=0, max=2**31 - 1),
    required=True,
    metavar="N",
    help="From 0; the smaller goes first.",
)
def reprioritize(ids: tuple[str, ...], priority: int, **options: Any) -> None:
    """Give jobs another priority. Those that run keep running."""
    jobs = _jobs(ids, options)
    done = words.client().reprioritize_jobs(jobs, priority=priority)
    _tell(jobs, {"Reprioritized": done.reprioritized})
    if isinstance(jobs, JobSelection):
        _tell_of_alike(len(done.unchanged), priority)
        none = "no such job is queued, leased, pending or running"
        _tell_of_none(jobs, done.reprioritized, done.unchanged, why=none)
        return
    for job in done.unchanged:
        say(f"Job {job} has this priority, has ended, or is being cancelled")


def _tell_of_alike(number: int, priority: int) -> None:
    more = " or more" * (number >= MOST_TOLD)
    if number:
        said = "1 job has" if number == 1 else f"{number:,} jobs{more} have"
        say(f"{said} priority {priority} already")


@click.command("preempt", cls=words.Command)
@_chosen
@click.option("--reason", default="", metavar="TEXT", help="Why, for the history of the jobs.")
def preempt(ids: tuple[str, ...], reason: str, **options: Any) -> None:
    """Have the runs of preemptible jobs give way.

    They get their grace period.
    """
    jobs = _jobs(ids, options)
    done = words.client().preempt_jobs(jobs, reason=reason)
    _tell(jobs, {"Requested preemption of": done.preempting})
    none = "no such job has a run of a preemptible priority class that was not asked yet"
    _tell_of_none(jobs, done.preempting, why=none)
    for job in done.unchanged:
        say(f"Job {job} has no run to preempt, or its run was asked already")
