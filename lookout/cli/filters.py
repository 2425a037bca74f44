"""Filters on the command line: those written as in an address, and options for what is asked most."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from lookout.client import filters_in

JOB_STATES = (
    "queued", "leased", "pending", "running", "cancelling", "succeeded", "failed", "cancelled", "preempted",
    "rejected",
)  # fmt: skip
RUN_STATES = (
    "leased", "pending", "running", "succeeded", "failed", "cancelled", "preempted", "lease_returned", "lease_expired",
)  # fmt: skip
FAILED = ("failed", "lease_expired")
"""States of runs that failed."""
JOB_SORTS = (
    "submitted", "stateChanged", "finished", "queue", "jobSet", "state", "owner", "namespace", "priority", "cpu",
    "memory", "runs", "id",
)  # fmt: skip
RUN_SORTS = (
    "leased", "started", "finished", "number", "queue", "executor", "node", "exitCode", "coreSeconds", "memoryPeak",
    "id",
)  # fmt: skip
_NAMES = {"job_set": "jobSet", "category_any": "category.any", "category_last": "category.last"}
"""Options whose filter has another name."""
_INSTEAD = {
    "limit": "Use --limit {value}.",
    "sort": "Use --sort {value}.",
    "format": "Use -o {value}.",
    "fields": "All fields are there with -o json.",
}
_OF_REST = "It is a parameter of lists in the REST API, which this command reads page by page."
_NO_FILTERS = (*_INSTEAD, "count", "cursor", "cursors")

type Option = Callable[[Callable[..., None]], Callable[..., None]]


def wanted(filters: Sequence[str], named: Mapping[str, Any]) -> dict[str, list[str]]:
    """What arguments and options ask for together. Raises UsageError for what would ask for nothing."""
    found = filters_in(filters)
    for name, values in found.items():
        if name in _NO_FILTERS:
            told = _INSTEAD.get(name, _OF_REST).format(value=values[0] or "VALUE")
            raise click.UsageError(f"{name} is no filter. {told}")
    for option, values in named.items():
        given = [values] if isinstance(values, str) else list(values)
        if any(given):
            found.setdefault(_NAMES.get(option, option), []).extend(given)
    return found


def _of(flag: str, metavar: str, told: str) -> Option:
    return click.option(flag, multiple=True, metavar=metavar, help=told)


def _in_state(states: Sequence[str]) -> Option:
    return click.option("--state", multiple=True, type=click.Choice(states), help="In this state.")


_IN_QUEUE = _of("--queue", "NAME", "In this queue.")
_OF_JOB_SET = _of("--job-set", "ID", "Of this job set.")


def _all(*options: Option) -> Option:
    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


of_jobs = _all(
    _IN_QUEUE,
    _in_state(JOB_STATES),
    _OF_JOB_SET,
    _of("--category-any", "CATEGORY", "It failed of it at some time: oom, or oom/limit."),
    _of("--category-last", "CATEGORY", "The last failure was of it."),
    click.option("--text", default="", metavar="TEXT", help="In the name of the job set or the owner."),
)
"""Options for what is asked most of jobs."""


def of_runs(states: Sequence[str]) -> Option:
    """Options for what is asked most of runs."""
    category = _of("--category", "CATEGORY", "It failed of it: oom, or oom/limit.")
    return _all(_IN_QUEUE, _in_state(states), _OF_JOB_SET, category)
