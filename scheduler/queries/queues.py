"""Read queues: their attachments, and how many jobs of each state they hold."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import Count

from scheduler.actors import QueueVerb
from scheduler.errors import NotFound
from scheduler.fields import is_line
from scheduler.models import Job, Queue, QueuePolicy
from scheduler.queries.cordons import OPEN, Cordon, cordons_of
from scheduler.queuefile import Grant, QueueSpec, Subject
from scheduler.states import ACTIVE_JOB_STATES, TERMINAL_JOB_STATES, JobState


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueRow:
    """A queue as lists show it."""

    queue: Queue
    retry_policies: tuple[str, ...]
    """In order of precedence; the first decides."""
    jobs: Mapping[JobState, int] = field(default_factory=dict)
    """Every state, also those with none."""
    cordon: Cordon = OPEN
    """Empty where it is not cordoned."""

    @property
    def name(self) -> str:
        return self.queue.name

    @property
    def spec(self) -> QueueSpec:
        """Everything people decide about it."""
        return queue_spec(self.queue, self.retry_policies)

    @property
    def waiting(self) -> int:
        """Jobs that are queued."""
        return self.jobs.get(JobState.QUEUED, 0)

    @property
    def active(self) -> int:
        """Jobs that have a run on an executor."""
        return sum(self.jobs.get(state, 0) for state in ACTIVE_JOB_STATES)

    @property
    def ended(self) -> int:
        """Jobs nothing follows for."""
        return sum(self.jobs.get(state, 0) for state in TERMINAL_JOB_STATES)


def queue_rows() -> list[QueueRow]:
    """Every queue by name, in four queries."""
    return _rows(list(Queue.objects.order_by("name")))


def queue_detail(name: str) -> QueueRow:
    """One queue. Raises NotFound."""
    queue = Queue.objects.filter(name=name).first() if is_line(name) else None
    if queue is None:
        raise NotFound("queue", name)
    return _rows([queue])[0]


def attached_policies(queues: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Queue → names of its policies in order of precedence; queues without any are absent."""
    found: dict[str, list[str]] = defaultdict(list)
    for attachment in QueuePolicy.objects.filter(queue__in=queues).order_by("queue_id", "ordinal"):
        found[attachment.queue_id].append(attachment.policy_id)
    return {queue: tuple(policies) for queue, policies in found.items()}


def queue_spec(queue: Queue, retry_policies: Collection[str]) -> QueueSpec:
    """A row and its attachments as the value people write."""
    return QueueSpec(
        name=queue.name,
        priority_factor=queue.priority_factor,
        owners=tuple(queue.owners),
        group_owners=tuple(queue.group_owners),
        permissions=tuple(
            Grant(
                subjects=tuple(Subject(kind=each["kind"], name=each["name"]) for each in entry["subjects"]),
                verbs=tuple(QueueVerb(verb) for verb in entry["verbs"]),
            )
            for entry in queue.permissions
        ),
        cordoned=queue.cordoned,
        labels=dict(queue.labels),
        retry_policies=tuple(retry_policies),
    )


def _rows(queues: list[Queue]) -> list[QueueRow]:
    names = [queue.name for queue in queues]
    attached = attached_policies(names)
    counted: dict[str, dict[JobState, int]] = {name: dict.fromkeys(JobState, 0) for name in names}
    states = Job.objects.filter(queue__in=names).values_list("queue_id", "state")
    for queue, state, count in states.order_by("queue_id", "state").annotate(count=Count("id")):
        counted[queue][JobState(state)] = count
    cordons = cordons_of([queue.name for queue in queues if queue.cordoned])
    return [
        QueueRow(
            queue=queue,
            retry_policies=attached.get(queue.name, ()),
            jobs=counted[queue.name],
            cordon=cordons.get(queue.name, OPEN),
        )
        for queue in queues
    ]
