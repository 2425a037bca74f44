"""What an executor has to do: runs to start, runs to end, runs it can forget."""

import json
from collections.abc import Collection
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q, TextField
from django.db.models.functions import Cast

from policies.growth import MemoryRecord
from policies.pods import grown_pod_spec
from scheduler.client_events import pod_name_of
from scheduler.executors.protocol import Lease, Stop, Work
from scheduler.models import Job, Run
from scheduler.models.bulk import among
from scheduler.models.preemption import ASKED_TO_GIVE_WAY
from scheduler.states import ACTIVE_RUN_STATES, RunState

_IS_TO_END = Q(job__cancel_requested_at__isnull=False) | ASKED_TO_GIVE_WAY
"""Of runs: somebody cancelled the job, or asked for the run to give way."""
LEASES_PER_ANSWER = 500
"""More come with the next answer, which is asked for as soon as these are known."""


def work_for(*, executor: str, known_runs: Collection[str], stopping: Collection[str] = ()) -> Work:
    """What the executor has to do, given the runs it knows of. Asking changes nothing; constant queries, and one
    where there is nothing to do.

    Leases are the runs made for it that it does not know yet. Stops leave out what it stops already. Whatever
    it knows that has ended here, or never was its own, it can forget; what it has said it took up and knows
    nothing of is missed.
    """
    known = {run_id: _uuid(run_id) for run_id in known_runs}
    ids = {run_id for run_id in known.values() if run_id}
    active, stopped = _active(executor)
    missed = (run_id for run_id, is_at_work in active.items() if is_at_work and run_id not in ids)
    not_at_work = {run_id for run_id, is_at_work in active.items() if not is_at_work}
    return Work(
        leases=_leases(executor, not_at_work & ids) if not_at_work - ids - stopped else (),
        stop=_stops(stopped, {run_id for text in stopping if (run_id := _uuid(text))}),
        forget=tuple(sorted(text for text, run_id in known.items() if run_id not in active)),
        missed=tuple(sorted(str(run_id) for run_id in missed)),
    )


class _Leased(NamedTuple):
    """A run in state leased as the query gives it. Thousands can be asked for at once: hence a tuple."""

    run_id: UUID
    job_id: str
    job_set: str
    queue: str
    namespace: str
    owner: str
    annotations: dict[str, str]
    labels: dict[str, str]
    number: int
    node: str
    pod_spec: str
    """As JSON: most jobs share theirs with others."""
    factor: float
    static_bytes: int
    request_bytes: int | None
    limit_bytes: int | None


_COLUMNS = (
    "id", "job_id", "job__job_set__name", "job__queue_id", "job__namespace", "job__owner", "job__annotations",
    "job__labels", "number", "node", "written_spec", "memory_factor", "memory_static_bytes",
    "memory_request_bytes", "memory_limit_bytes",
)  # fmt: skip


def _leases(executor: str, taken_up: Collection[UUID]) -> tuple[Lease, ...]:
    """Those the executor has not taken up yet."""
    rows = (
        Run.objects.filter(executor=executor, state=RunState.LEASED)
        .exclude(_IS_TO_END)
        .exclude(id__in=among(taken_up))
        .annotate(written_spec=Cast("job__spec__pod_spec", TextField()))
        .order_by("leased_at", "id")
        .values_list(*_COLUMNS)[:LEASES_PER_ANSWER]
    )
    grown: dict[tuple[object, ...], dict[str, Any]] = {}
    return tuple(_lease(_Leased._make(row), grown) for row in rows)


def _lease(leased: _Leased, grown: dict[tuple[object, ...], dict[str, Any]]) -> Lease:
    """`grown` holds the pod specs that were made for others, by all they depend on."""
    # The run's own record, not the job's: a lease says the same however often it is asked for.
    shape = leased[leased._fields.index("pod_spec") :]
    if shape not in grown:
        grown[shape] = _grown(leased)
    return Lease(
        run_id=str(leased.run_id),
        job_id=leased.job_id,
        job_set_id=leased.job_set,
        queue=leased.queue,
        namespace=leased.namespace,
        owner=leased.owner,
        number=leased.number,
        node=leased.node,
        pod_name=pod_name_of(leased.job_id),
        pod_spec=grown[shape],
        memory_bytes=leased.limit_bytes or 0,
        annotations=leased.annotations,
        labels=leased.labels,
    )


def _grown(leased: _Leased) -> dict[str, Any]:
    return grown_pod_spec(
        json.loads(leased.pod_spec),
        MemoryRecord(factor=leased.factor, static_bytes=leased.static_bytes),
        reserved_request_bytes=leased.request_bytes,
        reserved_limit_bytes=leased.limit_bytes,
    )


def _active(executor: str) -> tuple[dict[UUID, bool], set[UUID]]:
    """The executor's runs that have not ended, each with whether it took it up and is to go on with it, and
    those that somebody wants ended.
    """
    rows = (
        Run.objects.filter(executor=executor, state__in=ACTIVE_RUN_STATES)
        .annotate(is_to_end=ExpressionWrapper(_IS_TO_END, output_field=BooleanField()))
        .values_list("id", "state", "is_to_end")
    )
    goes_on, stopped = {}, set()
    for run_id, state, is_to_end in rows:
        goes_on[run_id] = state != RunState.LEASED and not is_to_end
        if is_to_end:
            stopped.add(run_id)
    return goes_on, stopped


def _stops(stopped: Collection[UUID], stopping: Collection[UUID]) -> tuple[Stop, ...]:
    """For runs that somebody wants ended, also those the executor has not heard of: it answers that they ended."""
    wanted = set(stopped).difference(stopping)
    if not wanted:
        return ()
    rows = Run.objects.filter(id__in=among(wanted)).order_by("id").select_related("job").only(*_OF_STOPPED)
    return tuple(
        Stop(run_id=str(run.id), grace_seconds=float(run.job.grace_period_seconds), reason=_why(run.job))
        for run in rows
    )


_OF_STOPPED = (
    "job__grace_period_seconds", "job__cancel_requested_at", "job__cancel_user", "job__cancel_reason",
    "job__preempt_reason",
)  # fmt: skip


def _why(job: Job) -> str:
    if job.cancel_requested_at is None:
        return job.preempt_reason
    return job.cancel_reason or f"Cancelled by {job.cancel_user}"


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
