"""The sentences of the list of jobs: how many there are of which, where in the list a page is, and why it is empty."""

from django.urls import reverse

from lookout.pages.bar import jobs_address, means_state
from lookout.pages.found import Found
from lookout.pages.headings import order_in_words
from policies.fields import suggestion
from scheduler.filters import JobFilter, Order, pairs_of
from scheduler.queries.counting import BOUND
from scheduler.queries.jobs import StateCounts
from scheduler.queries.names import queue_names
from scheduler.states import JobState


def summary(wanted: JobFilter, counts: StateCounts, *, no_queue: str) -> str:
    """How many jobs the filter means, whatever states it names, and how far they are."""
    if no_queue:
        return "no such queue"
    of = f" jobs{_of_which(wanted)}"
    if not counts.is_exact:
        return f"more than {BOUND:,}{of}"
    by_state = counts.counts
    open_ones = sum(count for state, count in by_state.items() if not state.is_terminal)
    total = sum(by_state.values())
    of = of.replace(" jobs", " job", 1) if total == 1 else of
    return f"{total:,}{of}, {open_ones:,} not ended, {by_state[JobState.FAILED]:,} ended failed"


def _of_which(wanted: JobFilter) -> str:
    queues = wanted.values("queue")
    others = wanted.without("state", "queue") if queues else wanted.without("state")
    of = f" of {', '.join(map(str, queues))}" if queues else ""
    return f"{of} that match the filters" if others else of


def page_words(found: Found, wanted: JobFilter, order: Order, counts: StateCounts) -> str:
    """Which rows of the list these are, and its order."""
    total = sum(count for state, count in counts.counts.items() if means_state(wanted, state))
    rows, first = found.page.rows, found.number
    of = f"of {total:,} jobs" if counts.is_exact else "jobs"
    if found.above is None or not rows:
        return f"{len(rows):,} {of}, {order_in_words(order)}"
    if first > BOUND:
        return f"{len(rows):,} jobs beyond the first {BOUND:,}, {order_in_words(order)}"
    return f"{first:,} to {first + len(rows) - 1:,} {of}, {order_in_words(order)}"


def empty(wanted: JobFilter, counts: StateCounts, *, no_queue: str) -> dict[str, str]:
    """Why no job is shown, and one way on."""
    if not wanted:
        return {
            "head": "No job yet",
            "text": "Submit one: ./tack submit job.yaml. It appears here at once.",
        }
    if hidden := sum(counts.counts.values()):
        return {
            "head": "No job like this",
            "text": f"The state filter hides {hidden:,} {'job' if hidden == 1 else 'jobs'}.",
            "way_on": jobs_address(pairs_of(wanted.without("state"))),
            "way_on_words": "Show every state",
        }
    return {
        "head": "No such queue" if no_queue else "No job like this",
        "text": no_queue or "The filters match nothing.",
        "way_on": reverse("jobs"),
        "way_on_words": "Show all jobs",
    }


def missing_queue(wanted: JobFilter, counts: StateCounts) -> str:
    """That the filter means no job as a queue it names does not exist, and which may be meant; else empty."""
    if any(counts.counts.values()) or not wanted.values("queue"):
        return ""
    there = queue_names()
    for name in map(str, wanted.values("queue")):
        if name not in there:
            return f"There is no queue '{name}'.{suggestion(name, there)}"
    return ""
