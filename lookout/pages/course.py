"""The course of a job for its page: runs as legs, what was decided between them as turns, newest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lookout.templatetags.figures import exact_duration
from lookout.templatetags.pictures import share_of
from policies.decision import Verdict
from policies.wording import undecided_sentence
from scheduler.models import Decision, Job, Run
from scheduler.queries.jobs import decision_of
from scheduler.states import RunState

_PHASE = {RunState.FAILED: "f", RunState.SUCCEEDED: "s", RunState.RUNNING: "r", RunState.LEASE_EXPIRED: "o"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Leg:
    """One run on the course."""

    run: Run
    lee: bool
    """On the right-hand side, as every even run is."""
    waited: timedelta | None
    """From being queued to its lease."""
    ran: timedelta | None
    spans: tuple[tuple[str, float, float], ...]
    message_name: str
    """Of its unfolded message, in the address."""
    label: str
    """What the bar of the run says to those who do not see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What followed from a run: a retry, the end, or a verdict that is still to come."""

    run: Run
    head: str
    shape: str
    colour: str
    decision: Decision | None = None
    sentence: str = ""
    at: datetime | None = None
    next_run: Run | None = None
    placed_after: timedelta | None = None
    avoided_before: str = ""
    avoided_after: str = ""
    awaits: bool = False


def course_of(
    job: Job, runs: Sequence[Run], sentences: Mapping[UUID, str], *, now: datetime
) -> list[Leg | Turn]:
    """Legs and turns, newest first. The runs are the job's, oldest first, each with its decision loaded.

    `sentences` says each decision, by its run's id.
    """
    return list(_backwards(job, runs, sentences, now))


def _backwards(
    job: Job, runs: Sequence[Run], sentences: Mapping[UUID, str], now: datetime
) -> Iterator[Leg | Turn]:
    for place in range(len(runs) - 1, -1, -1):
        run = runs[place]
        following = runs[place + 1] if place + 1 < len(runs) else None
        turn = _turn(job, run, following, _avoided_before(runs[:place]), sentences.get(run.id, ""))
        if turn is not None:
            yield turn
        yield _leg(job, run, runs[place - 1] if place else None, now)


def awaits_verdict(run: Run) -> bool:
    """The run ended and nobody has settled it yet."""
    return run.ended_at is not None and run.settled_at is None


def _avoided_before(earlier: Sequence[Run]) -> list[str]:
    for run in reversed(earlier):
        decision = decision_of(run)
        if decision is not None and decision.avoids_nodes:
            return list(decision.avoids_nodes)
    return []


def _turn(job: Job, run: Run, following: Run | None, avoided: list[str], sentence: str) -> Turn | None:
    decision = decision_of(run)
    if decision is not None:
        return _decided(job, run, decision, following, avoided, sentence)
    if run.state == RunState.SUCCEEDED or run.ended_at is None:
        return None
    if awaits_verdict(run):
        return _undecided(run)
    return _legacy(job, run, following)


def _decided(
    job: Job, run: Run, decision: Decision, following: Run | None, avoided: list[str], sentence: str
) -> Turn:
    if decision.verdict != Verdict.RETRY:
        return Turn(
            run=run, head="Not retried", shape=_stop(run), colour="failed",
            decision=decision, sentence=sentence, at=decision.decided_at,
        )  # fmt: skip
    return Turn(
        run=run,
        head=f"Retry {decision.policy_used_after} of {decision.policy_limit}",
        shape=_bend(run, following),
        colour="retry",
        decision=decision,
        sentence=sentence,
        at=decision.decided_at,
        next_run=following,
        placed_after=following.leased_at - decision.decided_at if following else None,
        avoided_before=", ".join(avoided) or "no node",
        avoided_after=", ".join(decision.avoids_nodes),
        awaits=following is None and job.ended_at is None,
    )


def _undecided(run: Run) -> Turn:
    if run.settle_error:
        sentence = f"Deciding failed and the run was set aside for an operator: {run.settle_error}"
        return Turn(run=run, head="Set aside", shape=_stop(run), colour="failed", sentence=sentence)
    return Turn(
        run=run, head="Deciding", shape=_bend(run, None), colour="soft", awaits=True,
        sentence="The run has ended; what follows from it is being decided.",
    )  # fmt: skip


def _legacy(job: Job, run: Run, following: Run | None) -> Turn:
    goes_on = following is not None or job.ended_at is None
    return Turn(
        run=run,
        head="Runs again" if goes_on else "Not run again",
        shape=_bend(run, following) if goes_on else _stop(run),
        colour="soft" if goes_on else "failed",
        sentence=undecided_sentence(run.undecided_because) if run.undecided_because else "",
        at=run.settled_at,
        next_run=following,
        placed_after=following.leased_at - run.settled_at if following and run.settled_at else None,
        awaits=goes_on and following is None,
    )


def _stop(run: Run) -> str:
    return "stop-left" if run.number % 2 else "stop-right"


def _bend(run: Run, following: Run | None) -> str:
    side = "right" if run.number % 2 else "left"
    return side if following else f"wait-{side}"


def _leg(job: Job, run: Run, before: Run | None, now: datetime) -> Leg:
    end = run.ended_at or now
    start, finish = job.submitted_at, job.ended_at or now
    began = run.started_at or end
    spans = [("v", share_of(start, finish, run.leased_at), share_of(start, finish, began))]
    if run.started_at:
        kind = _PHASE.get(RunState(run.state), "v")
        spans.append((kind, share_of(start, finish, began), share_of(start, finish, end)))
    queued_at = _queued_at(job, before)
    return Leg(
        run=run,
        lee=run.number % 2 == 0,
        waited=run.leased_at - queued_at if queued_at else None,
        ran=end - run.started_at if run.started_at else None,
        spans=tuple(spans),
        message_name=f"message-{run.number}",
        label=_label(job, run, end),
    )


def _queued_at(job: Job, before: Run | None) -> datetime | None:
    return job.submitted_at if before is None else before.settled_at


def _label(job: Job, run: Run, end: datetime) -> str:
    if run.started_at is None:
        return "Never started"
    after = exact_duration((run.started_at - job.submitted_at).total_seconds())
    ran = exact_duration((end - run.started_at).total_seconds())
    state = RunState(run.state).replace("_", " ")
    return f"Started {after} after submission, ran for {ran}, {state}"
