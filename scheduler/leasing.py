"""Lease queued jobs to executors, round by round, and end the runs that give way to them."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import transaction

from scheduler import client_events
from scheduler.config import Configuration
from scheduler.metrics import round_time
from scheduler.models import Counter, Event, Executor, Job, Node, Pool, PoolRound, Run, RunError
from scheduler.models.bulk import among, update_rows
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.fleet import TAKES_RUNS
from scheduler.models.jobs import NodePlace
from scheduler.models.preemption import JOB_FIELDS, RUN_FIELDS, Preemption, asked_to_give_way, preempt
from scheduler.models.runs import NewRun
from scheduler.models.ulids import uuid_of
from scheduler.planning import Plan, PlannedLease, PlannedPreemption, plan
from scheduler.planning.changed import Changes, Holding, what_holds
from scheduler.queries.pools import PoolSnapshot, pool_snapshot, stored_rates, told_of
from scheduler.states import ACTIVE_RUN_STATES, EventKind, JobState


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
    placed = _write(pool, planned, snapshot, config=config, started=started)
    if placed is None:
        return RoundResult(again=_leave_mark(pool))
    dropped = placed < len(planned.leases)
    again = Pool.objects.take_wish(pool) or planned.more or dropped
    return RoundResult(placed=placed, again=again)


def _says_nothing_new(planned: Plan, snapshot: PoolSnapshot) -> bool:
    """Nothing to do, and the reasons are those that the last round wrote: an idle pool writes nothing."""
    return not planned.leases and not planned.preemptions and told_of(planned) == snapshot.told


@transaction.atomic(durable=True)
def _write(
    pool: str, planned: Plan, snapshot: PoolSnapshot, *, config: Configuration, started: float
) -> int | None:
    """Write what still holds of the plan and return the number of leases; None when nothing of it does."""
    if not PoolRound.objects.try_lock(pool):
        return None
    jobs = _lock_jobs(planned)
    giving_way = _giving_way(planned.preemptions, jobs)
    holding = what_holds(planned, _changes(planned, jobs, giving_way))
    written = PoolRound.objects.write(
        pool,
        seen=snapshot.round_number,
        seconds=time.monotonic() - started,
        placed=len(holding.leases),
        rates=stored_rates(planned.rate, planned.queue_rates),
        **told_of(planned),
    )
    if not written:
        return None
    now = database_now()
    told = _preempt(holding.preemptions, giving_way, at=now, requeue=config.requeue_preempted)
    told += _lease(holding.leases, jobs, pool=pool, node_id_label=config.node_id_label, at=now)
    _wake(holding)
    Event.objects.append(told)  # last: it takes the numbers of the job sets
    Counter.objects.add(
        round_time(pool, time.monotonic() - started), reset_every_seconds=config.metrics_reset_seconds
    )
    return len(holding.leases)


class _LockedJob(NamedTuple):
    """What of a locked job says whether the plan holds. Thousands are locked: hence a tuple."""

    job_set_id: int
    state: str
    version: int


def _lock_jobs(planned: Plan) -> dict[str, _LockedJob]:
    """The jobs to be leased and those to give way, locked in id order, as they are now."""
    ids = {lease.job.id for lease in planned.leases} | {each.job_id for each in planned.preemptions}
    locked = Job.objects.filter(id__in=among(map(uuid_of, ids))).order_by("id").select_for_update(no_key=True)
    rows = locked.values_list("id", "job_set_id", "state", "version")
    return {job_id: _LockedJob(job_set_id, state, version) for job_id, job_set_id, state, version in rows}


def _giving_way(preemptions: Sequence[PlannedPreemption], jobs: Mapping[str, _LockedJob]) -> dict[str, Run]:
    """Run id → run, of those that still hold the room they are to give; their jobs are locked."""
    if not preemptions:
        return {}
    # A new statement: its snapshot is younger than the locks.
    ids = [UUID(each.run_id) for each in preemptions if each.job_id in jobs]
    runs = Run.objects.filter(id__in=among(ids), state__in=ACTIVE_RUN_STATES).select_related("job")
    return {str(run.id): run for run in runs}


def _changes(planned: Plan, jobs: Mapping[str, _LockedJob], giving_way: Mapping[str, Run]) -> Changes:
    versions = {lease.job.id: lease.job.version for lease in planned.leases}
    return Changes(
        waiting={
            job_id
            for job_id, version in versions.items()
            if job_id in jobs and jobs[job_id][1:] == (JobState.QUEUED, version)
        },
        open_nodes=_open_nodes(planned.leases),
        active=set(giving_way),
        may_give_way={
            run_id
            for run_id, run in giving_way.items()
            if run.job.cancel_requested_at is None and not asked_to_give_way(run)
        },
    )


def _open_nodes(leases: Sequence[PlannedLease]) -> set[tuple[str, str]]:
    """Nodes that take new runs now, and go on doing so until the leases are there: an agent that goes away has
    closed its nodes first, and no lease may come after that, nor after a cordon.
    """
    executors = {lease.node.executor for lease in leases}
    if not executors:
        return set()
    Executor.objects.hold(executors)
    # A new statement: its snapshot is younger than the locks.
    found = Node.objects.filter(TAKES_RUNS, executor__in=executors)
    return set(found.values_list("executor_id", "name"))


def _preempt(
    preemptions: Sequence[PlannedPreemption],
    runs: Mapping[str, Run],
    *,
    at: datetime,
    requeue: bool,
) -> list[NewEvent]:
    """End the runs that give way, and return the events of it. The room is free at once, and their executors are
    told to stop them.
    """
    events: list[NewEvent] = []
    for each in preemptions:
        why = Preemption(reason=each.reason, preempting_job_id=each.for_job)
        events += preempt(runs[each.run_id], why, at=at, recorded_at=at, requeue=requeue)
    ended = [runs[each.run_id] for each in preemptions]
    update_rows(ended, RUN_FIELDS)
    update_rows([run.job for run in ended], JOB_FIELDS)
    RunError.objects.bulk_create(
        RunError(run=run, message=each.reason) for run, each in zip(ended, preemptions, strict=True)
    )
    return events


def _lease(
    leases: Sequence[PlannedLease],
    jobs: Mapping[str, _LockedJob],
    *,
    pool: str,
    node_id_label: str,
    at: datetime,
) -> list[NewEvent]:
    """Write the runs, move their jobs, and return the events of it."""
    places: dict[NodePlace, list[NewRun]] = defaultdict(list)
    for lease in leases:
        node = lease.node
        place = NodePlace(executor=node.executor, node=node.name, node_id=node.node_id(node_id_label))
        places[place].append(NewRun(id=uuid4(), job_id=lease.job.id))
    Run.objects.lease(places, pool=pool, at=at)
    Job.objects.lease(
        {place: [run.job_id for run in runs] for place, runs in places.items()}, pool=pool, at=at
    )
    return [
        NewEvent(
            job_set_id=jobs[run.job_id].job_set_id,
            job_id=run.job_id,
            run_id=run.id,
            kind=EventKind.LEASED,
            created=at,
            payload=client_events.leased(executor=place.executor, pool=pool),
        )
        for place, runs in places.items()
        for run in runs
    ]


def _wake(holding: Holding) -> None:
    """Executors with leases, and those that have runs to stop."""
    leased = {lease.node.executor for lease in holding.leases}
    Executor.objects.wake(leased | {each.executor for each in holding.preemptions})


def _leave_mark(pool: str) -> bool:
    """Ask whoever writes a round now for another one; True when nobody does any more.

    The mark comes first and the look second: either the other sees the mark, or this one sees it gone.
    """
    Pool.objects.want_round(pool)
    with transaction.atomic():
        return PoolRound.objects.try_lock(pool)
