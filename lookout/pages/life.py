"""Questions before jobs are cancelled, reprioritised or preempted: one job, or those of the filter in the address."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from lookout.batches import until_done
from lookout.filters import address_of, job_filter
from lookout.pages import life_words as words
from lookout.pages.bar import filters_of, jobs_address, means_state
from lookout.pages.life_words import Word
from lookout.pages.shell import PageRequest, page, show
from scheduler import tasks
from scheduler.actors import Actor, Permission, QueueVerb
from scheduler.cancelling import cancel_jobs, cancel_selected
from scheduler.configured import configuration
from scheduler.errors import Invalid
from scheduler.filters import FilterInvalid, JobFilter, pairs_of, text_of
from scheduler.models import Job, Queue
from scheduler.preempting import of_preemptible_class, preempt_jobs, preempt_selected, would_give_way
from scheduler.queries.chosen import NARROW
from scheduler.queries.jobs import StateCounts, find_job, open_counts
from scheduler.queries.patience import within
from scheduler.reprioritising import reprioritize_jobs, reprioritize_selected
from scheduler.selection import OPEN_JOB_STATES, Selection
from scheduler.states import JobState

READ = ["GET", "HEAD", "POST"]
MOST_COUNTED = 100_000
"""Of what a filter means, in the question."""
_MAY = {
    Word.CANCEL: (QueueVerb.CANCEL, Permission.CANCEL_ANY_JOBS),
    Word.REPRIORITIZE: (QueueVerb.REPRIORITIZE, Permission.REPRIORITIZE_ANY_JOBS),
    Word.PREEMPT: (QueueVerb.PREEMPT, Permission.PREEMPT_ANY_JOBS),
}
_OF_GIVING_WAY = {"would": would_give_way, "preemptible": of_preemptible_class}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A question that a page leads to."""

    word: Word
    address: str
    may: bool = True
    what: str = ""

    @property
    def label(self) -> str:
        return f"{words.VERB[self.word]}{self.what}…"

    @property
    def is_grave(self) -> bool:
        """What is asked cannot be taken back."""
        return self.word is not Word.REPRIORITIZE


def _may(word: Word, actor: Actor, queue_of: Callable[[], Queue]) -> bool:
    """Whether the verb would let this person do it. Whoever may do it anywhere costs no look at the queue."""
    verb, permission = _MAY[word]
    return permission in actor.permissions or queue_of().allows(actor, verb)


def asks_of(job: Job, actor: Actor) -> list[Ask]:
    """What can be asked of the job as it is now, each with whether this person may ask it."""
    if job.state not in OPEN_JOB_STATES:
        return []
    wanted = [Word.REPRIORITIZE, *([Word.PREEMPT] if gives_way(job) else []), Word.CANCEL]
    return [
        Ask(
            word=word, address=reverse(f"{word}-job", args=[job.id]), may=_may(word, actor, lambda: job.queue)
        )
        for word in wanted
    ]


def gives_way(job: Job) -> bool:
    """Whether it has a run, of a class that is preemptible."""
    classes, name = configuration().priority_classes, configuration().class_of(job.priority_class)
    return job.state != JobState.QUEUED and name in classes and classes[name].preemptible


def asks_of_list(wanted: JobFilter, counts: StateCounts, actor: Actor) -> list[Ask]:
    """What can be asked of all jobs of the list, as far as this person may.

    Nothing of all jobs there are, nor where none of them is in a state in which it can be asked.
    """
    found = {state for state in OPEN_JOB_STATES if counts.counts[state] or not counts.is_exact}
    states = {state for state in found if means_state(wanted, state)}
    if not wanted or not states:
        return []
    filters, may = address_of(pairs_of(wanted)), _may_of_list(wanted, actor)
    return [
        Ask(word=word, address=reverse(f"{word}-jobs") + filters, what=" all")
        for word in may
        if word is not Word.PREEMPT or states - {JobState.QUEUED}
    ]


def _may_of_list(wanted: JobFilter, actor: Actor) -> list[Word]:
    """What this person may do in every queue that is named, or else in any queue at all.

    Those who may do everything anywhere cost no look at the queues.
    """
    named = wanted.values("queue")
    if {permission for _, permission in _MAY.values()} <= actor.permissions:
        return list(Word)
    queues = list(Queue.objects.filter(name__in=named) if named else Queue.objects.all())
    enough = all if named else any
    return [
        word
        for word, (verb, permission) in _MAY.items()
        if permission in actor.permissions
        or (queues and len(queues) >= len(named) and enough(queue.allows(actor, verb) for queue in queues))
    ]


@require_http_methods(READ)
@page
def of_job(request: PageRequest, job_id: str, word: Word) -> HttpResponse:
    """The question about one job; sent, it is done."""
    job = find_job(job_id)
    if request.method != "POST":
        return _ask_of_job(request, job, word)
    _tell(request, words.done_to_one(_named(word, job.id, request)), word)
    return redirect("job", job.id)


@require_http_methods(READ)
@page
def of_selection(request: PageRequest, word: Word) -> HttpResponse:
    """The question about the jobs of the filter in the address; sent, it is done to all of them."""
    wanted = _wanted(request)
    if request.method != "POST":
        return _ask_of_selection(request, wanted, word)
    done = until_done(_selected(word, Selection(filter=text_of(wanted)), request))
    _tell(request, words.done_to_many(done), word)
    return redirect(jobs_address(filters_of(request.GET)))


def _wanted(request: PageRequest) -> JobFilter:
    """The filter in the address. Raises Invalid, also for none: nothing means nothing, not everything."""
    try:
        wanted = job_filter(request.GET, from_form=False)
    except FilterInvalid as error:
        raise Invalid(str(error)) from error
    if not wanted:
        raise Invalid("Filter the list of jobs first: what is done is done to all that the filter means.")
    return wanted


def _ask_of_job(request: PageRequest, job: Job, word: Word) -> HttpResponse:
    here = reverse("job", args=[job.id])
    context = {
        "asked": words.question_about_one(word, job, gives_way=gives_way(job)),
        "may": _may(word, request.actor, lambda: job.queue),
        "crumbs": [(job.id, here)],
        "action": reverse(f"{word}-job", args=[job.id]),
        "back": here,
        "priority": job.priority,
    }
    return _show(request, context, word)


def _ask_of_selection(request: PageRequest, wanted: JobFilter, word: Word) -> HttpResponse:
    filters = filters_of(request.GET)
    with within(narrow=NARROW):
        asked = _asked_of_selection(wanted, word)
    context = {
        "asked": asked,
        "may": word in _may_of_list(wanted, request.actor),
        "crumbs": [],
        "action": reverse(f"{word}-jobs") + address_of(filters),
        "back": jobs_address(filters),
        "priority": "",
    }
    return _show(request, context, word)


def _asked_of_selection(wanted: JobFilter, word: Word) -> words.Question:
    found = open_counts(wanted, bound=MOST_COUNTED)
    if word is not Word.PREEMPT:
        return words.question_about_many(word, wanted, found)
    besides = {name: of(configuration()) for name, of in _OF_GIVING_WAY.items()}
    counts = {name: open_counts(wanted, bound=MOST_COUNTED, besides=each) for name, each in besides.items()}
    return words.question_of_giving_way(wanted, words.GivingWay(found=found, **counts))


def _show(request: PageRequest, context: Mapping[str, Any], word: Word) -> HttpResponse:
    return show(request, "life/question.html", {**context, "word": word}, place="jobs", part="question")


def _named(word: Word, job_id: str, request: PageRequest) -> words.Done:
    ids, actor, typed = [job_id], request.actor, request.POST
    match word:
        case Word.CANCEL:
            return cancel_jobs(job_ids=ids, reason=_reason(typed), actor=actor)
        case Word.REPRIORITIZE:
            return reprioritize_jobs(job_ids=ids, priority=_priority(typed), actor=actor)
        case Word.PREEMPT:
            return preempt_jobs(job_ids=ids, reason=_reason(typed), actor=actor, config=configuration())


def _selected(word: Word, chosen: Selection, request: PageRequest) -> Callable[[], words.Done]:
    actor, reason = request.actor, _reason(request.POST)
    match word:
        case Word.CANCEL:
            return lambda: cancel_selected(selection=chosen, reason=reason, actor=actor)
        case Word.REPRIORITIZE:
            priority = _priority(request.POST)
            return lambda: reprioritize_selected(selection=chosen, priority=priority, actor=actor)
        case Word.PREEMPT:
            config = configuration()
            return lambda: preempt_selected(selection=chosen, reason=reason, actor=actor, config=config)


def _tell(request: PageRequest, told: Sequence[str], word: Word) -> None:
    """What was done, and bells for what may follow from it."""
    messages.success(request, " ".join(told))
    if word is not Word.PREEMPT:
        tasks.ring_rounds()


def _reason(typed: QueryDict) -> str:
    return typed.get("reason", "").strip()


def _priority(typed: QueryDict) -> int:
    """Out of any bounds for what is no number: the verb refuses it, once it has asked who may."""
    text = typed.get("priority", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else -1
