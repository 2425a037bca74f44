"""The line that says why a job ended, as in: Failed: out of memory again, and both retries were spent."""

from __future__ import annotations

from dataclasses import dataclass

from policies.decision import GROWN_FITS_NO_NODE, Verdict
from policies.failures import INTERNAL, InternalSubcategory
from policies.quantity import rounded_bytes
from policies.wording import DecisionFacts, category_text, retries_spent, undecided_sentence

__all__ = ["Ending", "headline"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What a headline needs of a job: its state and, of its last run, what is known.

    `cause` is the model's word (OOM, Evicted, DeadlineExceeded, AppError). `again`: an earlier run failed of the same
    category. `by` and `reason` are those of a cancellation or rejection.
    """

    state: str
    runs: int = 1
    category: str = ""
    subcategory: str = ""
    cause: str = ""
    exit_code: int | None = None
    again: bool = False
    decision: DecisionFacts | None = None
    undecided_because: str = ""
    by: str = ""
    reason: str = ""


def headline(ending: Ending) -> str:
    """Why the job ended, in one sentence or two; empty while it has not ended."""
    match ending.state:
        case "succeeded":
            return _succeeded(ending.runs)
        case "failed":
            return _failed(ending)
        case "cancelled":
            return _ended_by_somebody("Cancelled", ending)
        case "preempted":
            return _ended_by_somebody("Preempted", ending)
        case "rejected":
            return _ended_by_somebody("Rejected", ending)
        case _:
            return ""


def _succeeded(runs: int) -> str:
    if runs <= 1:
        return "Succeeded on its first run."
    return f"Succeeded on run {runs}, after {'1 retry' if runs == 2 else f'{runs - 1:,} retries'}."


def _ended_by_somebody(word: str, ending: Ending) -> str:
    by = f" by {ending.by}" if ending.by else ""
    return _sentence(f"{word}{by}{': ' if ending.reason else ''}{ending.reason}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _failed(ending: Ending) -> str:
    what = f"Failed: {_what(ending)}{' again' if ending.again else ''}"
    if ending.decision is not None:
        return f"{what}{_why_no_retry(ending.decision)}."
    return f"{what}." + (
        f" {undecided_sentence(ending.undecided_because)}" if ending.undecided_because else ""
    )


_INTERNAL: dict[str, str] = {
    InternalSubcategory.JOB_CREATION_FAILED: "the executor could not start it",
    InternalSubcategory.POD_MISSING: "its pod was missing",
    InternalSubcategory.STUCK_TERMINATING: "its remains could not be removed",
    InternalSubcategory.EXTERNALLY_DELETED: "somebody else deleted its pod",
    InternalSubcategory.ISSUE_HANDLER_ERROR: "its pod started while it was being removed",
    InternalSubcategory.ACTIVE_DEADLINE: "it outlived its deadline",
    InternalSubcategory.LEASE_EXPIRED: "its executor was lost",
    InternalSubcategory.MAX_RUNS_EXCEEDED: "its lease was given back too often",
    InternalSubcategory.JOB_REJECTED: "it can never be placed",
    InternalSubcategory.NODE_FAILURE: "its node went away",
}
_CAUSES = {"OOM": "out of memory", "Evicted": "evicted from its node", "DeadlineExceeded": "out of time"}


def _what(ending: Ending) -> str:
    if ending.category == INTERNAL and ending.subcategory in _INTERNAL:
        return _INTERNAL[ending.subcategory]
    if ending.cause in _CAUSES:
        return _CAUSES[ending.cause]
    if ending.category:
        return f"category {category_text(ending.category, ending.subcategory)}"
    if ending.exit_code:
        return f"exit code {ending.exit_code}, no category"
    return "no category"


def _why_no_retry(facts: DecisionFacts) -> str:
    match facts.verdict:
        case Verdict.FAIL_POLICY_LIMIT:
            return f", and {retries_spent(facts.policy_limit)}"
        case Verdict.FAIL_GLOBAL_LIMIT if facts.global_limit == 0:
            return ", and all retries are switched off"
        case Verdict.FAIL_GLOBAL_LIMIT:
            return f", and the global limit of {facts.global_limit:,} was reached"
        case Verdict.FAIL_RULE:
            number = (facts.rule_index or 0) + 1
            return f", which rule {number} of {facts.policy} does not retry"
        case Verdict.FAIL_DEFAULT:
            return f", which no rule of {facts.policy} retries"
        case Verdict.RETRY_UNSCHEDULABLE if facts.reason == GROWN_FITS_NO_NODE and facts.memory_to:
            return f", and with {rounded_bytes(facts.memory_to)} it fits no node"
        case Verdict.RETRY_UNSCHEDULABLE:
            return ", and no node is left that it could try"
        case _:
            return ""
