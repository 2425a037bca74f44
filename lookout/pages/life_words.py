"""The sentences of cancelling, reprioritising and preempting: what is asked, and what was done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scheduler.cancelling import Cancelled
from scheduler.filters import JobFilter, in_words
from scheduler.models import Job
from scheduler.preempting import Preempting
from scheduler.queries.jobs import StateCounts
from scheduler.reprioritising import Reprioritized
from scheduler.selection import OPEN_JOB_STATES
from scheduler.states import JobState

type Done = Cancelled | Reprioritized | Preempting


class Word(StrEnum):
    """What can be asked of jobs."""

    CANCEL = "cancel"
    REPRIORITIZE = "reprioritize"
    PREEMPT = "preempt"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Jobs of one state, and what becomes of them."""

    state: JobState
    what: str
    count: int | None = None
    """None for the one job there is, and for more than were counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked before it is done."""

    head: str
    lines: Sequence[Line]
    keep: str
    """The words of the way back."""
    do: str
    """The words of the way on."""
    is_idle: bool = False
    """There is nothing it would be done to."""
    meant: str = ""
    """The filter in words, where many are asked about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GivingWay:
    """Open jobs of a filter, by whether their runs can be preempted."""

    found: StateCounts
    would: StateCounts
    """Those that would be preempted."""
    preemptible: StateCounts
    """Those of a class that is preemptible."""


VERB = {Word.CANCEL: "Cancel", Word.REPRIORITIZE: "Reprioritise", Word.PREEMPT: "Preempt"}
_GRACE = {Word.CANCEL: "is stopped", Word.PREEMPT: "gives way"}
_NO_RUN = "has no run, nothing changes"
_STAYS = "is of a priority class that is not preemptible, nothing changes"
_ASKED = "was asked before or is ending, nothing changes"


def question_about_one(word: Word, job: Job, *, gives_way: bool) -> Question:
    """Before it is done to one job."""
    state = JobState(job.state)
    grace = f", with {job.grace_period_seconds} s of grace"
    stays = word is Word.PREEMPT and state in OPEN_JOB_STATES and not gives_way
    why_not = _NO_RUN if state is JobState.QUEUED else _STAYS
    return Question(
        head=f"{VERB[word]} this job?",
        lines=[
            Line(state=state, what=why_not if stays else _what(word, state, whose="its run", grace=grace))
        ],
        keep="Keep it",
        do=f"{VERB[word]} the job",
        is_idle=stays or state not in OPEN_JOB_STATES,
    )


def question_about_many(word: Word, wanted: JobFilter, found: StateCounts) -> Question:
    """Before jobs are cancelled or reprioritised: all open ones of a filter, as far as they were counted."""
    return _about_many(word, wanted, found, _lines(word, found))


def question_of_giving_way(wanted: JobFilter, jobs: GivingWay) -> Question:
    """Before the jobs of a filter are preempted that can be; what is left alone is said, and why."""
    lines = [*_lines(Word.PREEMPT, jobs.would), *(_left_alone(jobs) if jobs.found.is_exact else ())]
    return _about_many(Word.PREEMPT, wanted, jobs.would, lines)


def _about_many(word: Word, wanted: JobFilter, done_to: StateCounts, lines: Sequence[Line]) -> Question:
    total = sum(done_to.counts.values())
    what = _jobs(total) if done_to.is_exact else f"more than {_jobs(total - 1)}"
    return Question(
        head=f"{VERB[word]} {what}?",
        meant=in_words(wanted),
        lines=lines,
        keep="Keep them",
        do=f"{VERB[word]} {what}",
        is_idle=not total,
    )


def _lines(word: Word, found: StateCounts) -> list[Line]:
    return [
        Line(
            state=state,
            count=count if found.is_exact else None,
            what=_what(word, state, whose="each run", grace=", with its grace"),
        )
        for state, count in found.counts.items()
        if count
    ]


def _left_alone(jobs: GivingWay) -> list[Line]:
    """The others of each state, by why."""
    lines = []
    for state, count in jobs.found.counts.items():
        preemptible, would = jobs.preemptible.counts[state], jobs.would.counts[state]
        left = (
            {_NO_RUN: count}
            if state is JobState.QUEUED
            else {_STAYS: count - preemptible, _ASKED: preemptible - would}
        )
        lines += [Line(state=state, count=many, what=why) for why, many in left.items() if many > 0]
    return lines


def _what(word: Word, state: JobState, *, whose: str, grace: str) -> str:
    if state.is_terminal:
        return "has ended, nothing changes"
    if word is Word.REPRIORITIZE:
        return "another place in the line" if state is JobState.QUEUED else "keeps running"
    if state is JobState.QUEUED:
        return "never starts"
    return f"{whose} {_GRACE[word]}{grace}"


def done_to_one(done: Done) -> Sequence[str]:
    """What was done to the one job."""
    match done:
        case Cancelled(cancelled=(_,)):
            return ["The job is cancelled."]
        case Cancelled(cancelling=(_,)):
            return ["The job is being cancelled; its run is given time to end."]
        case Cancelled():
            return ["The job had ended already."]
        case Reprioritized(reprioritized=(_,)):
            return ["The job has another priority."]
        case Preempting(preempting=(_,)):
            return ["The job's run was asked to give way; it is given time to end."]
    return ["Nothing changed: it was asked before, or there is nothing to ask."]


def done_to_many(done: Sequence[Done]) -> Sequence[str]:
    """What was done to the jobs of a selection, in one or several batches."""
    told: dict[str, int] = {}
    for each in done:
        for what, count in _counted(each).items():
            told[what] = told.get(what, 0) + count
    sentences = [f"{_jobs(count)} {what}." for what, count in told.items() if count]
    more = ["There are more: do it again to go on."] if done[-1].more else []
    return [*sentences, *more] or ["Nothing changed: there are no such jobs."]


def _counted(done: Done) -> Mapping[str, int]:
    match done:
        case Cancelled():
            return {"cancelled": len(done.cancelled), "asked to end": len(done.cancelling)}
        case Reprioritized():
            return {"reprioritised": len(done.reprioritized)}
        case Preempting():
            return {"asked to give way": len(done.preempting)}


def _jobs(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"
