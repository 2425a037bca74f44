"""Lease queued jobs to executors, round by round, and expire the leases of executors that fell silent."""

import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from policies.failures import INTERNAL, InternalSubcategory
from scheduler import client_events
from scheduler.config import Configuration
from scheduler.fingerprint import fingerprint
from scheduler.models import Event, Executor, Job, Node, Pool, PoolRound, Run, RunError
from scheduler.models.bulk import among, update_rows
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.runs import NewRun, NodePlace
from scheduler.models.ulids import uuid_of
from scheduler.planning import Plan, PlannedLease, plan
from scheduler.queries.fleet import heard_of
from scheduler.queries.pools import PoolSnapshot, pool_snapshot, stored_rates
from scheduler.states import ACTIVE_RUN_STATES, EventKind, JobState, RunState

EXPIRED_AT_ONCE = 5_000
"""What one transaction expires at most."""
LEASE_EXPIRED = "Lease expired"
EXPIRY_FIELDS = (
    "state", "ended_at", "recorded_at", "attempted", "category", "subcategory", "fingerprint", "core_seconds",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundResult:
    """What a round did."""

    placed: int = 0
    again: bool = False
    """Another round would find work at once: ring for it."""


def run_round(*, pool: str, config: Configuration) -> RoundResult:
    """Place what can be placed now. Never overcommits a node, however many rounds go on at once.

    The plan is made outside any transaction, so that nothing is held while it is thought about, and written
    in one short one, unless another round of the pool was written since. While another round is being
    written this one leaves a mark and the other answers it.
    """
    started = time.monotonic()
    snapshot = pool_snapshot(pool, config=config)
    if snapshot is None:
        return RoundResult()
    planned = plan(snapshot.state)
    if _says_nothing_new(planned, snapshot):
        return RoundResult()
    placed = _write(pool, planned, snapshot, started=started)
    if placed is None:
        return RoundResult(again=_leave_mark(pool))
    dropped = placed < len(planned.leases)
    again = Pool.objects.take_wish(pool) or planned.more or dropped
    return RoundResult(placed=placed, again=again)


@transaction.atomic
def expire_leases(*, config: Configuration) -> int:
    """End the runs of executors silent for longer than `executorTimeout`; returns how many.

    They are left for settling, which decides what becomes of their jobs. A second call finds nothing.
    """
    silent = ~heard_of(config, path="executor__")
    active = Run.objects.filter(silent, state__in=ACTIVE_RUN_STATES)
    jobs = _locked(list(active.values_list("job_id", flat=True)[:EXPIRED_AT_ONCE]))
    # A new statement: its snapshot is younger than the locks.
    runs = list(active.filter(job__in=list(jobs)).order_by("job_id"))
    now = database_now()
    for run in runs:
        run.job = jobs[run.job_id]
        _expire(run, now)
    update_rows(runs, EXPIRY_FIELDS)
    RunError.objects.bulk_create([RunError(run=run, message=LEASE_EXPIRED) for run in runs])
    Event.objects.append(
        NewEvent(
            job_set_id=run.job.job_set_id,
            job_id=run.job_id,
            run_id=run.id,
            kind=EventKind.LEASE_EXPIRED,
            created=now,
        )
        for run in runs
    )
    return len(runs)


def _says_nothing_new(planned: Plan, snapshot: PoolSnapshot) -> bool:
    """No lease, and the reasons are those that the last round wrote: an idle pool writes nothing."""
    return not planned.leases and (planned.unplaced, planned.held) == (snapshot.unplaced, snapshot.held)


@transaction.atomic(durable=True)
def _write(pool: str, planned: Plan, snapshot: PoolSnapshot, *, started: float) -> int | None:
    """Write what still holds of the plan and return the number of leases; None when nothing of it does."""
    if not PoolRound.objects.try_lock(pool):
        return None
    waiting = _lock_waiting(planned.leases)
    open_nodes = _open_nodes(planned.leases)
    leases = [
        lease
        for lease in planned.leases
        if lease.job.id in waiting and (lease.node.executor, lease.node.name) in open_nodes
    ]
    written = PoolRound.objects.write(
        pool,
        seen=snapshot.round_number,
        seconds=time.monotonic() - started,
        placed=len(leases),
        unplaced=dict(planned.unplaced),
        held=dict(planned.held),
        gangs={queue: dict(reasons) for queue, reasons in planned.gangs.items()},
        limited={queue: dict(reasons) for queue, reasons in planned.limited.items()},
        rates=stored_rates(planned.rate, planned.queue_rates),
    )
    if not written:
        return None
    _lease(leases, waiting, pool=pool, node_id_label=snapshot.state.node_id_label)
    return len(leases)


def _lock_waiting(leases: Sequence[PlannedLease]) -> dict[str, int]:
    """Job id → job set of the jobs that wait as they did when the plan was made, locked in id order."""
    planned = {lease.job.id: lease.job.version for lease in leases}
    locked = (
        Job.objects.filter(id__in=among(map(uuid_of, planned))).order_by("id").select_for_update(no_key=True)
    )
    return {
        job_id: job_set_id
        for job_id, job_set_id, state, version in locked.values_list("id", "job_set_id", "state", "version")
        if state == JobState.QUEUED and version == planned[job_id]
    }


def _locked(ids: Sequence[str]) -> dict[str, Job]:
    """The jobs as they are now, locked in id order; whoever else locks several does so in that order too."""
    jobs = Job.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True)
    return {job.id: job for job in jobs}


def _open_nodes(leases: Sequence[PlannedLease]) -> set[tuple[str, str]]:
    """Nodes that take new runs now, and go on doing so until the leases are there: an agent that goes away has
    closed its nodes first, and no lease may come after that.
    """
    executors = {lease.node.executor for lease in leases}
    if not executors:
        return set()
    Executor.objects.hold(executors)
    # A new statement: its snapshot is younger than the locks.
    found = Node.objects.filter(executor__in=executors, schedulable=True)
    return set(found.values_list("executor_id", "name"))


def _lease(
    leases: Sequence[PlannedLease], job_sets: Mapping[str, int], *, pool: str, node_id_label: str
) -> None:
    """Write the runs, move their jobs, tell the executors and the clients."""
    now = database_now()
    places: dict[NodePlace, list[NewRun]] = defaultdict(list)
    for lease in leases:
        node = lease.node
        place = NodePlace(executor=node.executor, node=node.name, node_id=node.node_id(node_id_label))
        places[place].append(NewRun(id=uuid.uuid4(), job_id=lease.job.id))
    Run.objects.lease(places, pool=pool, at=now)
    Job.objects.lease([lease.job.id for lease in leases], at=now)
    Executor.objects.wake(place.executor for place in places)
    Event.objects.append(
        NewEvent(
            job_set_id=job_sets[run.job_id],
            job_id=run.job_id,
            run_id=run.id,
            kind=EventKind.LEASED,
            created=now,
            payload=client_events.leased(executor=place.executor, pool=pool),
        )
        for place, runs in places.items()
        for run in runs
    )


def _leave_mark(pool: str) -> bool:
    """Ask whoever writes a round now for another one; True when nobody does any more.

    The mark comes first and the look second: either the other sees the mark, or this one sees it gone.
    """
    Pool.objects.want_round(pool)
    with transaction.atomic():
        return PoolRound.objects.try_lock(pool)


def _expire(run: Run, now: datetime) -> None:
    run.state = RunState.LEASE_EXPIRED
    run.ended_at = run.recorded_at = now
    run.attempted = True
    run.category, run.subcategory = INTERNAL, InternalSubcategory.LEASE_EXPIRED
    run.fingerprint = fingerprint(LEASE_EXPIRED)
    if run.started_at is not None:
        run.core_seconds = run.cpu_request_millicores / 1000 * (now - run.started_at).total_seconds()
