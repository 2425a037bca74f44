"""`get job`: one job in full, its runs and what was decided about each."""

from collections.abc import Iterator

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookout.cli import words
from lookout.cli.printing import NONE, age, console, plain, print_as, size, span, state_text, table
from lookout.client import Client, JobDetail, NotFound, Run

LEASE_RETURNED = "lease_returned"


@words.get.command("job")
@click.argument("job_id", metavar="ID")
@click.option("--output", "with_output", is_flag=True, help="With what its last run to start wrote.")
@click.option(
    "--run", "number", type=click.IntRange(min=1), metavar="N", help="With --output: what run N wrote."
)
@words.output_option("text", "json", "yaml")
def get_command(job_id: str, number: int | None, form: str, *, with_output: bool) -> None:
    """Show a job: facts, runs, decisions, its last error."""
    if number and not with_output:
        raise click.UsageError("--run says whose output to show: give --output, too.")
    tack = words.client()
    job = tack.job(job_id)
    if form != "text":
        print_as(form, job.json)
        return
    out = console()
    out.print(_facts(job))
    _print_runs(out, job)
    _print_last_error(out, job)
    if with_output:
        _print_output(out, tack, job, number)


def _facts(job: JobDetail) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in _facts_of(job):
        grid.add_row(Text(name, style="bold"), value if isinstance(value, Text) else Text(plain(value)))
    return grid


def _facts_of(job: JobDetail) -> Iterator[tuple[str, str | Text]]:
    yield "Job", job.job_id
    yield "Queue", job.queue
    yield "Job set", job.job_set_id
    if job.client_id:
        yield "Client id", job.client_id
    yield "Owner", job.owner or NONE
    yield (
        "State",
        state_text(job.state).append(f", {age(job.state_changed_at)} ago" if job.state_changed_at else ""),
    )
    yield "Submitted", f"{age(job.submitted_at)} ago"
    yield "Memory", _memory(job)
    if job.avoided_nodes:
        yield "Avoids", ", ".join(job.avoided_nodes)
    if job.waiting_because:
        yield "Waits because", job.waiting_because
    if job.rejected_because:
        yield "Rejected because", job.rejected_because
    if job.cancel_user:
        yield "Cancelled by", _asked(job.cancel_user, job.cancel_reason)
    if job.preempt_user:
        yield "Preemption asked by", _asked(job.preempt_user, job.preempt_reason)
    for name, value in job.annotations.items():
        yield "Annotation", f"{name}={value}"
    for name, value in job.labels.items():
        yield "Label", f"{name}={value}"


def _asked(user: str, reason: str) -> str:
    return f"{user}: {reason}" if reason else user


def _memory(job: JobDetail) -> str:
    now = job.resources.memory_limit_bytes or job.resources.memory_request_bytes if job.resources else None
    before = job.submitted_memory_bytes
    return f"{size(now)} (submitted with {size(before)})" if before and before != now else size(now)


def _print_runs(out: Console, job: JobDetail) -> None:
    if not job.runs:
        return
    headings = ("RUN", "STATE", "NODE", "STARTED", "TOOK", "EXIT", "CATEGORY", "RETRYABLE", "MEMORY", "PEAK")
    out.print()
    out.print(table(headings, [_run_row(run) for run in job.runs], whole=headings[:2]))
    out.print()
    for run in job.runs:
        if told := _decided(run):
            out.print(Text(plain(f"Run {run.number}: {told}")))


def _run_row(run: Run) -> list[str | Text]:
    took = span(run.ended_at - run.started_at) if run.ended_at and run.started_at else NONE
    retryable = NONE if run.retryable is None else "yes" if run.retryable else "no"
    return [
        str(run.number),
        state_text(run.state),
        run.node or NONE,
        f"{age(run.started_at)} ago" if run.started_at else NONE,
        took,
        NONE if run.exit_code is None else str(run.exit_code),
        str(run.failure or NONE),
        retryable,
        size(run.memory_limit_bytes),
        size(run.memory_peak_bytes),
    ]


def _decided(run: Run) -> str:
    if run.decision:
        return run.decision.sentence or run.decision.reason
    return run.undecided_sentence


def _print_last_error(out: Console, job: JobDetail) -> None:
    """Of the last failure; of a lease that came back, only where nothing failed."""
    told = [run for run in reversed(job.runs) if run.error and run.error.message]
    run = next((run for run in told if run.state != LEASE_RETURNED), next(iter(told), None))
    if run and run.error:
        out.print(Text(f"\nLast error, of run {run.number}:", style="bold"))
        out.print(Text(plain(run.error.message.rstrip())))


def _print_output(out: Console, tack: Client, job: JobDetail, number: int | None) -> None:
    run = _run_to_show(job, number)
    if run is None:
        out.print("\nThere is no output: the job has not run.")
        return
    try:
        written = tack.run_output(run.run_id)
    except NotFound:
        written = ""
    out.print(Text(f"\n{_headline(run, written)}", style="bold"))
    if written:
        click.echo(plain(written), nl=not written.endswith("\n"))


def _run_to_show(job: JobDetail, number: int | None) -> Run | None:
    """The run of that number, else the last one that started, else the last one."""
    if number is None:
        started = [run for run in job.runs if run.started_at]
        return next(reversed(started or job.runs), None)
    found = next((run for run in job.runs if run.number == number), None)
    if found is None:
        there = f"It has runs 1 to {len(job.runs)}" if job.runs else "It has not run"
        raise click.ClickException(f"Job {job.job_id} has no run {number}. {there}.")
    return found


def _headline(run: Run, written: str) -> str:
    if written:
        return f"Output of run {run.number}:"
    if not run.ended_at:
        return f"Run {run.number} has not ended. Its output comes with its end."
    if not run.started_at:
        return f"Run {run.number} has no output: it never started."
    return f"Run {run.number} left no output."
