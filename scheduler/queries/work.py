"""What an executor has to do: runs to start, runs to end, runs it can forget."""

from collections.abc import Collection
from uuid import UUID

from policies.growth import MemoryRecord
from policies.pods import grown_pod_spec
from scheduler.client_events import pod_name_of
from scheduler.executors.protocol import Lease, Stop, Work
from scheduler.models import Run
from scheduler.models.bulk import among
from scheduler.states import ACTIVE_RUN_STATES, RunState

LEASES_PER_ANSWER = 500
"""More come with the next answer, which is asked for as soon as these are known."""


def work_for(*, executor: str, known_runs: Collection[str], stopping: Collection[str] = ()) -> Work:
    """What the executor has to do, given the runs it knows of. Asking changes nothing; constant queries.

    Leases are the runs made for it that it does not know yet. Stops leave out what it stops already. Whatever
    it knows that has ended here, or never was its own, it can forget; what it has said it took up and knows
    nothing of is missed.
    """
    known = {run_id: _uuid(run_id) for run_id in known_runs}
    ids = {run_id for run_id in known.values() if run_id}
    active, stopped = _active(executor)
    missed = (run_id for run_id, is_at_work in active.items() if is_at_work and run_id not in ids)
    return Work(
        leases=_leases(executor, {run_id for run_id in ids if active.get(run_id) is False}),
        stop=_stops(stopped, {run_id for text in stopping if (run_id := _uuid(text))}),
        forget=tuple(sorted(text for text, run_id in known.items() if run_id not in active)),
        missed=tuple(sorted(str(run_id) for run_id in missed)),
    )


_OF_LEASES = (
    "number", "node", "memory_request_bytes", "memory_limit_bytes", "memory_factor", "memory_static_bytes",
    "job__queue_id", "job__namespace", "job__owner", "job__annotations", "job__labels",
    "job__spec__pod_spec", "job__job_set__name",
)  # fmt: skip
"""What is read for a lease."""


def _leases(executor: str, taken_up: Collection[UUID]) -> tuple[Lease, ...]:
    """Those the executor has not taken up yet."""
    runs = (
        Run.objects.filter(executor=executor, state=RunState.LEASED, job__cancel_requested_at__isnull=True)
        .exclude(id__in=among(taken_up))
        .select_related("job__spec", "job__job_set")
        .only(*_OF_LEASES)
        .order_by("leased_at", "id")
    )
    return tuple(_lease(run) for run in runs[:LEASES_PER_ANSWER])


def _lease(run: Run) -> Lease:
    job = run.job
    # The run's own record, not the job's: a lease says the same however often it is asked for.
    record = MemoryRecord(factor=run.memory_factor, static_bytes=run.memory_static_bytes)
    return Lease(
        run_id=str(run.id),
        job_id=job.id,
        job_set_id=job.job_set.name,
        queue=job.queue_id,
        namespace=job.namespace,
        owner=job.owner,
        number=run.number,
        node=run.node,
        pod_name=pod_name_of(job.id),
        pod_spec=grown_pod_spec(
            job.spec.pod_spec,
            record,
            reserved_request_bytes=run.memory_request_bytes,
            reserved_limit_bytes=run.memory_limit_bytes,
        ),
        memory_bytes=run.memory_limit_bytes or 0,
        annotations=job.annotations,
        labels=job.labels,
    )


def _active(executor: str) -> tuple[dict[UUID, bool], set[UUID]]:
    """The executor's runs that have not ended, each with whether it took it up and is to go on with it, and
    those whose job somebody cancelled.
    """
    rows = Run.objects.filter(executor=executor, state__in=ACTIVE_RUN_STATES).values_list(
        "id", "state", "job__cancel_requested_at"
    )
    goes_on, stopped = {}, set()
    for run_id, state, cancelled_at in rows:
        goes_on[run_id] = state != RunState.LEASED and cancelled_at is None
        if cancelled_at is not None:
            stopped.add(run_id)
    return goes_on, stopped


def _stops(stopped: Collection[UUID], stopping: Collection[UUID]) -> tuple[Stop, ...]:
    """For runs of jobs somebody cancelled, also those the executor has not heard of: it answers that they ended."""
    wanted = set(stopped).difference(stopping)
    if not wanted:
        return ()
    rows = (
        Run.objects.filter(id__in=wanted)
        .order_by("id")
        .values_list("id", "job__grace_period_seconds", "job__cancel_user", "job__cancel_reason")
    )
    return tuple(
        Stop(run_id=str(run_id), grace_seconds=float(grace), reason=reason or f"Cancelled by {user}")
        for run_id, grace, user, reason in rows
    )


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
