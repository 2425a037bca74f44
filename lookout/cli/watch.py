"""`watch`: the events of a job set as they happen, until all its jobs have ended."""

from collections import Counter
from collections.abc import Iterable

import click

from lookout.cli import words
from lookout.cli.printing import print_json, say
from lookout.client import Client, Event

SUMMARY = ("Queued", "Leased", "Pending", "Running", "Succeeded", "Failed", "Cancelled")
ENDED = ("Succeeded", "Failed", "Cancelled")
SOME_FAILED = 3
"""Exit code when a job failed; 1 would mean that watching did."""

REJECTED = "Rejected"
"""The cause of a job's failure that never had a pod."""
_STATES = {
    "submitted": "Submitted",
    "queued": "Queued",
    "leased": "Leased",
    "leaseReturned": "Queued",
    "leaseExpired": "Queued",
    "pending": "Pending",
    "running": "Running",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "cancelled": "Cancelled",
}
_OF_A_POD = {"leaseReturned", "pending", "running", "succeeded", "failed"}


class WatchedJobSet:
    """Where the jobs of a job set stand, as far as its events have told."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.last = 0

    def take(self, event: Event) -> None:
        """Take note of an event. A failure that is retried counts as back in the queue."""
        self.last = event.id
        state = "Queued" if event.kind == "failed" and event.retryable else _STATES.get(event.kind)
        if state:
            self.states[event.job_id] = state

    @property
    def has_ended(self) -> bool:
        """Whether there are jobs and none of them goes on."""
        return bool(self.states) and all(state in ENDED for state in self.states.values())

    @property
    def has_failures(self) -> bool:
        """Whether a job has failed for good."""
        return "Failed" in self.states.values()

    @property
    def summary(self) -> str:
        """How many jobs are in each state."""
        counts = Counter(self.states.values())
        return ", ".join(f"{state}: {counts[state]:3}" for state in SUMMARY)


@click.command("watch", cls=words.Command)
@click.argument("queue")
@click.argument("job_set", metavar="JOBSET")
@click.option("--raw", is_flag=True, help="Print each event as one line of JSON.")
def watch(queue: str, job_set: str, *, raw: bool) -> None:
    """Print the events of a job set as they happen.

    Ends when all its jobs have ended.

    Exits with 0 when none failed, 3 when some did, and 1 when they could not be watched.
    """
    tack = words.client()
    if not raw:
        say(f"Watching job set {job_set}")
    watched = WatchedJobSet()
    _print(tack.events(queue, job_set), watched, raw=raw)
    if not watched.last:
        say(f"It has no jobs yet. Waiting for the first in queue {queue}.", err=True)
    if not watched.has_ended:
        _follow(tack, queue, job_set, watched, raw=raw)
    if watched.has_failures:
        click.get_current_context().exit(SOME_FAILED)


def _follow(tack: Client, queue: str, job_set: str, watched: WatchedJobSet, *, raw: bool) -> None:
    for event in tack.follow(queue, job_set, after=watched.last):
        _print([event], watched, raw=raw)
        # Jobs submitted since are news that the stream may not have told yet.
        if watched.has_ended and not tack.event_page(queue, job_set, after=watched.last, limit=1).events:
            return


def _print(events: Iterable[Event], watched: WatchedJobSet, *, raw: bool) -> None:
    for event in events:
        watched.take(event)
        if raw:
            print_json({"id": event.id, "message": {event.kind: event.fields}}, indent=None)
        else:
            _print_line(event, watched)


def _print_line(event: Event, watched: WatchedJobSet) -> None:
    kind = f"Job{event.kind[:1].upper()}{event.kind[1:]}Event"
    had_pod = event.kind in _OF_A_POD and event.fields.get("cause") != REJECTED
    pod = f" pod: {event.fields.get('podNumber') or 0}" if had_pod else ""
    when = event.created.astimezone().strftime("%b %e %H:%M:%S") if event.created else ""
    say(f"{when} | {watched.summary} | {kind}, job id: {event.job_id}{pod}")
    if event.kind == "failed":
        say(f"Job failed: {event.reason.rstrip()}")
        if event.retryable:
            say(f"{_why_again(event)}The job is queued again.")


def _why_again(event: Event) -> str:
    policy, category = event.fields.get("retryPolicyName"), event.fields.get("failureCategory")
    return f"Retried by retry policy {policy}, category {category or 'none'}. " if policy else ""
