"""Jobs that somebody asks something of: who may, which they are, and their rows locked in id order."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduler.actors import Actor, NotPermitted, Permission, QueueVerb
from scheduler.errors import Invalid, NotFound, TooMuchAsked
from scheduler.models import Executor, Job, Node, Queue, Run
from scheduler.models.bulk import among
from scheduler.models.ulids import ulid_of, uuid_of
from scheduler.queries.leads import jobs_found
from scheduler.queries.patience import within
from scheduler.selection import Selection
from scheduler.states import ACTIVE_RUN_STATES

MAX_JOBS = 10_000
"""Jobs that are named in one call."""
BATCH = 5_000
"""Jobs of a selection in one transaction: it took 1 to 1.8 seconds to cancel or reprioritise so many, on two busy cores."""
MAX_REASON_LENGTH = 2_000
LEFT_ALONE_SECONDS = 2.0
"""What it may take to tell which jobs were left alone: what is asked for was done by then, and is not undone for it."""
NARROW = "Such jobs take too long to find. Narrow the filter: name a queue, a job set, or a time such as submitted>=-1d."
_LEFT_OUT = (
    "annotations", "labels", "resources", "node_selector", "affinity", "tolerations", "avoided_nodes",
)  # fmt: skip
"""Of ten thousand jobs these would be most of what is read."""
_ANY_JOBS = {
    QueueVerb.CANCEL: Permission.CANCEL_ANY_JOBS,
    QueueVerb.REPRIORITIZE: Permission.REPRIORITIZE_ANY_JOBS,
    QueueVerb.PREEMPT: Permission.PREEMPT_ANY_JOBS,
}


class Chosen(NamedTuple):
    """Jobs that are locked, and what is known of those that are not."""

    jobs: list[Job]
    """With their queues loaded."""
    selected: str = ""
    """In words; empty where they were named."""
    more: bool = False
    """There may be others like these."""


def lock_named(job_ids: Sequence[str], *, verb: QueueVerb, actor: Actor) -> Chosen:
    """The jobs of these ids, each once, in the order asked.

    All or none: raises NotPermitted where the actor may not do this to one of them, and only then Invalid for
    what is no job id, NotFound for an unknown job.
    """
    ids, strange = _read_ids(job_ids)
    jobs = {job.id: job for job in _locked(Job.objects.filter(id__in=among(map(uuid_of, ids))))}
    if not all(queue.allows(actor, verb) for queue in _queues_of(jobs.values())):
        actor.require(_ANY_JOBS[verb])
    if strange:
        raise strange[0]
    missing = [job_id for job_id in ids if job_id not in jobs]
    if missing:
        raise NotFound("job", missing[0])
    return Chosen([jobs[job_id] for job_id in ids])


def lock_selected(selection: Selection, *, verb: QueueVerb, actor: Actor, besides: Q | None = None) -> Chosen:
    """The next jobs of a selection, BATCH at most. `besides` must hold as well.

    Raises NotPermitted, also where a filter means jobs of queues in which the actor may not, then Invalid, then
    NotFound for a queue, executor or node that does not exist, and TooMuchAsked.
    """
    allowed = _require(selection, verb, actor)
    selection.check()
    _must_exist(selection)
    with within(narrow=NARROW):
        wanted = _wanted(selection) & (besides or Q())
        if allowed is not None:
            _refuse_elsewhere(wanted, allowed, verb, actor)
            wanted &= Q(queue__in=allowed)  # others may come between the two statements
        ids = list(Job.objects.filter(wanted).values_list("id", flat=True)[:BATCH])
    found = Job.objects.filter(wanted, id__in=among(map(uuid_of, ids)))
    locked = list(_locked(found))
    # They may have moved on before they were locked, and what is asked of their runs must still hold as well. That
    # takes a statement of its own: of what it reads in other tables, one that waited sees what there was before.
    still = set(found.values_list("id", flat=True))
    return Chosen([job for job in locked if job.id in still], selected=str(selection), more=len(ids) == BATCH)


def ids_in(selection: Selection, besides: Q) -> tuple[str, ...]:
    """Jobs of a selection that was checked, for which `besides` holds: MAX_JOBS at most, and none where that takes long."""
    try:
        with within(LEFT_ALONE_SECONDS, narrow=NARROW):
            wanted = Job.objects.filter(_wanted(selection) & besides)
            return tuple(wanted.values_list("id", flat=True)[:MAX_JOBS])
    except TooMuchAsked:
        return ()


def check_reason(reason: str) -> None:
    """Raises Invalid for a reason that is too long or cannot be stored."""
    if "\x00" in reason or len(reason) > MAX_REASON_LENGTH:
        raise Invalid(f"A reason has at most {MAX_REASON_LENGTH:,} characters. Shorten it.", path="reason")


def executors_at_work(jobs: Collection[Job]) -> dict[str, str]:
    """Job id → the executor that has a run of it; empty where a run ended and its settling ends the job."""
    unsettled = Q(ended_at__isnull=False, settled_at__isnull=True, settle_error="")
    mine = Q(job__in=among(uuid_of(job.id) for job in jobs))
    runs = Run.objects.filter(Q(state__in=ACTIVE_RUN_STATES) | unsettled, mine).order_by("job_id", "number")
    return {
        job_id: executor if ended_at is None else ""
        for job_id, executor, ended_at in runs.values_list("job_id", "executor_id", "ended_at")
    }


def _read_ids(job_ids: Sequence[str]) -> tuple[list[str], list[Invalid]]:
    """Ids as they are shown, each once, and what is wrong with the others."""
    if len(job_ids) > MAX_JOBS:
        raise Invalid(f"At most {MAX_JOBS:,} jobs are named at once. Send the rest apart.", path="jobIds")
    found: dict[str, None] = {}
    strange = []
    for index, text in enumerate(job_ids):
        try:
            found[ulid_of(uuid_of(text))] = None
        except ValueError as error:
            strange.append(Invalid(str(error), path=f"jobIds[{index}]"))
    return list(found), strange


def _locked(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """In id order, as whoever else locks several does."""
    rows = jobs.select_related("queue").defer(*_LEFT_OUT)
    return rows.order_by("id").select_for_update(no_key=True, of=("self",))


def _queues_of(jobs: Iterable[Job]) -> Collection[Queue]:
    return {job.queue_id: job.queue for job in jobs}.values()


def _require(selection: Selection, verb: QueueVerb, actor: Actor) -> set[str] | None:
    """The queues that the filter must keep to; None where it may mean any. Raises NotPermitted.

    Without a queue that allows it, or a filter that may mean only such, it takes the permission for any jobs.
    """
    if _ANY_JOBS[verb] in actor.permissions:
        return None
    queues = Queue.objects.filter(name=selection.queue) if selection.queue else Queue.objects.all()
    allowed = {queue.name for queue in queues if queue.allows(actor, verb)}
    if not allowed or not (selection.queue or selection.filter):
        raise NotPermitted(actor, _ANY_JOBS[verb])
    return None if selection.queue else allowed


def _refuse_elsewhere(wanted: Q, allowed: set[str], verb: QueueVerb, actor: Actor) -> None:
    """Raises NotPermitted where jobs of other queues are meant: all or none."""
    others = Job.objects.filter(wanted).exclude(queue__in=allowed)
    queue = others.values_list("queue", flat=True).first()
    if queue is not None:
        raise NotPermitted(actor, _ANY_JOBS[verb], queue=queue)


def _must_exist(selection: Selection) -> None:
    if selection.queue and not Queue.objects.filter(name=selection.queue).exists():
        raise NotFound("queue", selection.queue[:63])
    if selection.executor and not Executor.objects.filter(name=selection.executor).exists():
        raise NotFound("executor", selection.executor[:63])
    nodes = Node.objects.filter(executor=selection.executor, name=selection.node)
    if selection.node and not nodes.exists() and not _runs_on(selection).exists():
        raise NotFound("node", selection.node[:253])


def _wanted(selection: Selection) -> Q:
    wanted = Q(state__in=selection.open_states) & jobs_found(selection.wanted)
    if selection.queue:
        wanted &= Q(queue=selection.queue)
    if selection.job_set:
        wanted &= Q(job_set__name=selection.job_set)
    if selection.priority_classes:
        wanted &= Q(priority_class__in=selection.priority_classes)
    if selection.executor:
        wanted &= Q(Exists(_runs_on(selection).filter(job=OuterRef("pk"))))
    return wanted


def _runs_on(selection: Selection) -> QuerySet[Run]:
    runs = Run.objects.filter(executor=selection.executor, state__in=ACTIVE_RUN_STATES)
    return runs.filter(node=selection.node) if selection.node else runs
