"""`submit`: jobs from a file."""

from pathlib import Path

import click

from lookout.cli import words
from lookout.cli.files import FileProblem, LoadedFile, load_file
from lookout.cli.printing import say
from lookout.cli.queue_files import head_of


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
