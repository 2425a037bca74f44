"""Commands for jobs: submit them, list them."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from lookout.cli import words
from lookout.cli.files import FileProblem, LoadedFile, load_file
from lookout.cli.printing import NONE, age, console, print_as, say, state_text, table
from lookout.cli.queue_files import head_of
from lookout.client import Job

STATES = (
    "queued",
    "leased",
    "pending",
    "running",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "preempted",
    "rejected",
)


@click.command("submit", cls=words.Command)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Have Tack check the file and submit nothing.")
def submit(file: Path, *, dry_run: bool) -> None:
    """Submit the jobs in FILE (- is the standard input)."""
    loaded = load_file(file)
    job_set = _job_set(loaded)
    with words.problems_told_of(loaded):
        jobs = words.client().submit_jobs(loaded.value, dry_run=dry_run)
    if dry_run:
        say(f"{loaded.name} is valid. Nothing was submitted.")
        return
    for job in jobs:
        again = "" if job.created else f" (it was there already, with client id {job.client_id})"
        say(f"Submitted job with id {job.job_id} to job set {job_set}{again}")


def _job_set(file: LoadedFile) -> str:
    """The id of the job set in a file that is fit to be sent. Raises FileRefused."""
    if file.problems:
        raise file.refused(file.problems)
    if not isinstance(file.value, dict):
        raise file.refused(
            [FileProblem(path="", message="There are no jobs here. Begin with queue, jobSetId and jobs.")]
        )
    kind = head_of(file).get("kind")
    if kind in ("Queue", "RetryPolicy"):
        message = f"This is a {kind}, no job file: make it with tack create -f {file.name}."
        raise file.refused([FileProblem(path="kind", message=message)])
    return next((str(value) for key, value in file.value.items() if key.lower() == "jobsetid"), "")


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    options = [
        click.option("--queue", multiple=True, metavar="NAME", help="In this queue."),
        click.option("--state", multiple=True, type=click.Choice(STATES), help="In this state."),
        click.option("--job-set", multiple=True, metavar="ID", help="Of this job set."),
        click.option(
            "--category-any",
            multiple=True,
            metavar="CATEGORY",
            help="It failed of it at some time: oom, or oom/limit.",
        ),
        click.option(
            "--category-last", multiple=True, metavar="CATEGORY", help="The last failure was of it."
        ),
        click.option("--text", default="", metavar="TEXT", help="In the name of the job set or the owner."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@words.get.command("jobs")
@_filters
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=1_000_000),
    default=50,
    show_default=True,
    help="At most so many.",
)
@words.output_option("table", "json", "yaml")
def list_command(limit: int, form: str, **filters: Any) -> None:
    """Show jobs, newest first. Filters may be repeated: either value will do."""
    found = list(islice(words.client().jobs(**filters, limit=limit + 1), limit + 1))
    shown = found[:limit]
    if form == "table":
        console().print(_table(shown)) if shown else click.echo("No jobs.", err=True)
    else:
        print_as(form, {"jobs": [job.json for job in shown]})
    if len(found) > limit:
        these = "this one" if limit == 1 else f"these {limit:,}"
        say(f"There are more than {these}: --limit shows more, filters fewer.", err=True)


def _table(jobs: Sequence[Job]) -> Any:
    headings = ("JOB", "QUEUE", "JOB SET", "STATE", "RUNS", "CATEGORY", "AGE")
    return table(headings, [_row(job) for job in jobs], whole=("JOB", "STATE", "RUNS", "AGE"))


def _row(job: Job) -> list[str | Text]:
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
