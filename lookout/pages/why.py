"""Why a job ended, or what it waits for: the first thing its page says, in one line."""

from collections.abc import Sequence
from dataclasses import dataclass

from lookout.pages.course import awaits_verdict
from policies.decision import Verdict
from policies.quantity import rounded_bytes
from policies.wording import category_text, retries_spent, undecided_sentence
from scheduler.models import Decision, Job, Run
from scheduler.queries.failures import last_failed_run
from scheduler.queries.jobs import decision_of
from scheduler.states import JobState, RunState


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """The line, the sentence beneath it, and the class that colours its edge."""

    colour: str
    line: str
    more: str = ""


def why(job: Job, runs: Sequence[Run], *, waiting_because: str = "", end_message: str = "") -> Why:
    """The answer of the page, whatever state the job is in. The runs are oldest first.

    `end_message` is the text of the event that ended the job as failed.
    """
    state = JobState(job.state)
    if state is JobState.REJECTED:
        return Why(colour="rejected", line="Rejected: it can never run here.", more=job.rejected_because)
    if state in (JobState.CANCELLED, JobState.CANCELLING):
        return _cancelled(job, state)
    last = runs[-1] if runs else None
    if state is JobState.PREEMPTED:
        return Why(colour="preempted", line="Preempted: its run gave way.", more=end_message)
    if last is None:
        return Why(colour="queued", line="Waiting for a node.", more=waiting_because)
    if state is JobState.SUCCEEDED:
        return Why(colour="succeeded", line=_success(runs), more=_what_helped(runs))
    if state is JobState.FAILED:
        returned = last.state == RunState.LEASE_RETURNED
        return _without_a_run(runs, end_message) if returned else _failed(runs, last)
    if awaits_verdict(last) and not last.settle_error:
        return Why(
            colour="soft", line=f"Run {last.number} {_ended(last)}. Deciding what follows.", more=_error(last)
        )
    if state is JobState.QUEUED:
        return Why(colour="queued", line=_queued(last), more=waiting_because)
    if is_to_give_way(job, last):
        line = f"Being preempted; its run is given time to end. Asked for by {job.preempt_user}."
        return Why(colour="preempted", line=line, more=job.preempt_reason)
    return Why(colour=_active_colour(last), line=_active(last), more=_before(runs))


def is_to_give_way(job: Job, last: Run) -> bool:
    """Somebody asked for the preemption of its run, which has not ended."""
    asked_at = job.preempt_requested_at
    return RunState(last.state).is_active and asked_at is not None and asked_at >= last.leased_at


def _failed(runs: Sequence[Run], last: Run) -> Why:
    decision = decision_of(last)
    if decision is not None:
        return Why(colour="failed", line=f"Failed: {_what(last)}{_again(runs)}, {_verdict_words(decision)}.",
                   more=_where(last))  # fmt: skip
    because = f" {undecided_sentence(last.undecided_because)}" if last.undecided_because else ""
    return Why(colour="failed", line=f"Failed: {_what(last)}.", more=f"{_where(last)}{because}")


def _without_a_run(runs: Sequence[Run], end_message: str) -> Why:
    """A returned lease is no failure: what the job failed of lies before it, and the end says why no run came."""
    failed = last_failed_run(runs)
    returned = len(runs) - (failed.number if failed else 0)
    leases = "the lease after it was" if returned == 1 else f"the {returned} leases after it were"
    line = (
        f"Failed: {_what(failed)} at run {failed.number}, and {leases} returned."
        if failed
        else "Failed: no lease of it came to a run."
    )
    end, _, error = end_message.partition("\n\n")
    more = f"{end.rstrip('.')}." if end else ""
    last_error = error.partition("\n")[2].partition("\n")[0]
    returned_for = f" The last lease was returned: {last_error}" if last_error else ""
    return Why(colour="failed", line=line, more=f"{more}{returned_for}".strip())


def _verdict_words(decision: Decision) -> str:
    policy = f"{decision.policy_name} (version {decision.policy_version})"
    rule = f"rule {(decision.rule_index or 0) + 1} of {policy}"
    return {
        Verdict.FAIL_RULE: f"and {rule} says such a failure is not retried",
        Verdict.FAIL_DEFAULT: f"and no rule of {policy} matched it; otherwise it says Fail",
        Verdict.FAIL_POLICY_LIMIT: f"and {retries_spent(decision.policy_limit)}",
        Verdict.FAIL_GLOBAL_LIMIT: f"and {retries_spent(decision.global_limit)} that any policy may grant",
        Verdict.NO_ERROR: "and nothing is known about the error, so it was not retried",
        Verdict.RETRY_UNSCHEDULABLE: f"and the retry that {rule} granted fits no node",
    }.get(Verdict(decision.verdict), f"verdict {decision.verdict}")


def _what(run: Run) -> str:
    """What a run failed of, as a noun."""
    if run.state == RunState.LEASE_EXPIRED:
        return "its executor stopped answering"
    if run.state == RunState.LEASE_RETURNED:
        return "its lease was returned"
    if run.killed_by == "memory":
        return "out of memory"
    if run.killed_by == "deadline":
        return "out of time"
    if run.category:
        return f"category {category_text(run.category, run.subcategory)}"
    return "an error without a category" if run.exit_code is None else f"exit code {run.exit_code}"


def _again(runs: Sequence[Run]) -> str:
    return " again" if any(_what(run) == _what(runs[-1]) for run in runs[:-1]) else ""


def _where(run: Run) -> str:
    limit = run.memory_limit_bytes
    if run.killed_by == "memory" and limit:
        return f"Run {run.number} reached its {rounded_bytes(limit)} limit on {run.node}."
    code = "" if run.exit_code is None else f" with exit code {run.exit_code}"
    return f"Run {run.number} ended on {run.node}{code}."


def _cancelled(job: Job, state: JobState) -> Why:
    doing = (
        "Cancelled"
        if state is JobState.CANCELLED
        else "Being cancelled; its run is given time to end. Asked for"
    )
    line = f"{doing} by {job.cancel_user}." if job.cancel_user else f"{doing}."
    return Why(colour=str(state), line=line, more=job.cancel_reason)


def _success(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return "Succeeded at the first run."
    first, last = (run.memory_limit_bytes or run.memory_request_bytes for run in (runs[0], runs[-1]))
    grown = (
        f" with {rounded_bytes(last)} of memory instead of {rounded_bytes(first)}"
        if last and first and last != first
        else ""
    )
    return f"Succeeded at run {runs[-1].number}{grown}."


def _what_helped(runs: Sequence[Run]) -> str:
    before = runs[-2] if len(runs) > 1 else None
    return f"Run {before.number} {_ended(before)}, and the job was run again." if before else ""


def _queued(last: Run) -> str:
    decision = decision_of(last)
    if decision is None:
        return f"Run {last.number} {_ended(last)}. Waiting for a node to run again."
    retry = f"retry {decision.policy_used_after} of {decision.policy_limit}"
    grown = f" with {rounded_bytes(decision.memory_to_bytes)}" if decision.memory_to_bytes else ""
    return f"Run {last.number} {_ended(last)}. Waiting for a node for {retry}{grown}."


def _active(last: Run) -> str:
    words = {
        RunState.LEASED: f"Run {last.number} was leased to {last.node} and has not begun.",
        RunState.PENDING: f"Run {last.number} is starting on {last.node}.",
        RunState.RUNNING: f"Run {last.number} is running on {last.node}.",
    }
    return words.get(RunState(last.state), f"Run {last.number} {_ended(last)}.")


def _active_colour(last: Run) -> str:
    return str(last.state) if RunState(last.state).is_active else "soft"


def _before(runs: Sequence[Run]) -> str:
    return f"Run {runs[-2].number} {_ended(runs[-2])}." if len(runs) > 1 else ""


def _ended(run: Run) -> str:
    state = RunState(run.state)
    if state is RunState.SUCCEEDED:
        return "succeeded"
    if state in (RunState.LEASE_RETURNED, RunState.LEASE_EXPIRED):
        return f"ended, as {_what(run)}"
    return "gave way" if state is RunState.PREEMPTED else f"failed: {_what(run)}"


def _error(run: Run) -> str:
    error = getattr(run, "error", None)
    return error.message.split("\n")[0] if error is not None else ""
