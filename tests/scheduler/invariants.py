"""What must hold of the rows at any time, whatever happened before."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from scheduler.models import Decision, Event, Job, JobSet, Node, Run
from scheduler.placement import reserved_memory
from scheduler.queries.failures import last_failure
from scheduler.states import ACTIVE_JOB_STATES, FAILED_RUN_STATES, EventKind, JobState, RunState

_ENDINGS = {
    EventKind.SUCCEEDED: {JobState.SUCCEEDED},
    EventKind.CANCELLED: {JobState.CANCELLED},
    EventKind.FAILED: {JobState.FAILED, JobState.PREEMPTED, JobState.REJECTED},
}
"""The event that ends a job → what the job is then."""
_ASIDE = {EventKind.REPRIORITIZING, EventKind.REPRIORITIZED, EventKind.CANCELLING, EventKind.PREEMPTING}
"""Events that may come at any time before the end."""
_AFTER: dict[EventKind | None, set[EventKind]] = {
    None: {EventKind.SUBMITTED},
    EventKind.SUBMITTED: {EventKind.QUEUED},
    EventKind.QUEUED: {EventKind.LEASED, EventKind.CANCELLED, EventKind.FAILED},
    EventKind.LEASED: {EventKind.PENDING},
    EventKind.PENDING: {EventKind.RUNNING},
    EventKind.RUNNING: {EventKind.SUCCEEDED},
    EventKind.LEASE_RETURNED: {EventKind.LEASED, EventKind.FAILED, EventKind.CANCELLED},
    EventKind.LEASE_EXPIRED: {EventKind.FAILED, EventKind.CANCELLED},
    EventKind.PREEMPTED: {EventKind.FAILED},
    EventKind.FAILED: {EventKind.LEASED, EventKind.CANCELLED, EventKind.FAILED},
}
"""What may follow an event of a job, besides the ways a run ends early. After `failed` only where it goes on."""
_EARLY = {
    EventKind.FAILED, EventKind.LEASE_RETURNED, EventKind.LEASE_EXPIRED, EventKind.CANCELLED, EventKind.PREEMPTED,
}  # fmt: skip
for _kind in (EventKind.LEASED, EventKind.PENDING, EventKind.RUNNING):
    _AFTER[_kind] |= _EARLY


def check_all() -> None:
    """Everything below."""
    runs = _runs_by_job()
    check_jobs(runs)
    check_nodes()
    check_decisions(runs)
    check_events(runs)


def _runs_by_job() -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for run in Run.objects.order_by("job_id", "number"):
        found[run.job_id].append(run)
    return found


def check_jobs(runs_of: dict[str, list[Run]]) -> None:
    """A job is where its runs are, and one of them at most goes on."""
    for job in Job.objects.all():
        runs = runs_of[job.id]
        active = [run for run in runs if RunState(run.state).is_active]
        unsettled = [run for run in runs if run.ended_at is not None and run.settled_at is None]
        assert [run.number for run in runs] == list(range(1, job.run_count + 1)), job
        assert active in ([], runs[-1:]) and unsettled in ([], runs[-1:]), job
        assert bool(active or unsettled) == (job.state in ACTIVE_JOB_STATES), (job, job.state)
        assert all(run.settle_error == "" for run in runs), [run.settle_error for run in runs]
        if active and job.state != JobState.CANCELLING:
            assert job.state == active[0].state, job
        check_last_run(job, runs)


def check_last_run(job: Job, runs: list[Run]) -> None:
    """A job knows where it ran last and what it failed of last, as its runs say."""
    place = (runs[-1].executor_id, runs[-1].node, runs[-1].pool) if runs else (None, None, None)
    assert (job.last_executor, job.last_node, job.last_pool) == place, job
    failure = last_failure(job, runs)
    told = (failure.category, failure.subcategory) if failure else (None, None)
    assert (job.last_category, job.last_subcategory) == told, job


def check_nodes() -> None:
    """No node carries more than it has."""
    used: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for run in Run.objects.filter(ended_at__isnull=True):
        amounts = used[run.executor_id, run.node]
        amounts[0] += run.cpu_request_millicores
        amounts[1] += reserved_memory(request=run.memory_request_bytes, limit=run.memory_limit_bytes)
    for node in Node.objects.all():
        cpu, memory = used.pop((node.executor_id, node.name), [0, 0])
        assert cpu <= node.cpu_millicores and memory <= node.memory_bytes, node
    assert not used


def check_decisions(runs_of: dict[str, list[Run]]) -> None:
    """A failure is decided about once or has a reason why not, and no retry is granted beyond a limit."""
    decisions = {decision.run_id: decision for decision in Decision.objects.all()}
    for runs in runs_of.values():
        for number, run in enumerate(runs):
            decision = decisions.pop(run.id, None)
            settled_badly = run.settled_at is not None and run.state != RunState.SUCCEEDED
            assert settled_badly == (decision is not None or run.undecided_because != ""), run
            assert decision is None or run.undecided_because == "", run
            if decision is not None:
                _check_budget(decision, runs[:number])
    assert not decisions


def _check_budget(decision: Decision, earlier: Sequence[Run]) -> None:
    failed_before = sum(run.state in FAILED_RUN_STATES for run in earlier)
    assert decision.policy_used_before == decision.global_used_before == failed_before, decision
    if decision.verdict == "retry":
        assert decision.policy_used_after == failed_before + 1 <= decision.policy_limit, decision
        assert decision.global_used_after == failed_before + 1 <= decision.global_limit, decision


def check_events(runs_of: dict[str, list[Run]]) -> None:
    """Numbers have no gap, and the events of each job tell its story once and in order."""
    told: dict[str, list[Event]] = defaultdict(list)
    for job_set in JobSet.objects.all():
        events = list(Event.objects.filter(job_set=job_set).order_by("number"))
        assert [event.number for event in events] == list(range(1, job_set.last_event + 1))
        for event in events:
            told[event.job_id].append(event)
    for job in Job.objects.all():
        _check_story(job, told[job.id])
        _check_runs_told(told[job.id], runs_of[job.id])


def _check_story(job: Job, events: Sequence[Event]) -> None:
    last: Event | None = None
    for event in events:
        assert not (last and _is_end(last)), (job, last, event)
        if event.kind in _ASIDE:
            continue
        after = EventKind(last.kind) if last else None
        assert event.kind in _AFTER[after], (job, [each.kind for each in events])
        last = event
    assert last is not None
    assert _is_end(last) == JobState(job.state).is_terminal, (job.state, [each.kind for each in events])
    if _is_end(last):
        assert job.state in _ENDINGS[EventKind(last.kind)], (job.state, last)
    kinds = [event.kind for event in events]
    assert kinds.count(EventKind.CANCELLING) == (job.cancel_requested_at is not None)
    assert kinds.count(EventKind.REPRIORITIZING) == kinds.count(EventKind.REPRIORITIZED)


def _is_end(event: Event) -> bool:
    if event.kind == EventKind.FAILED:
        return not event.payload["retryable"]
    return event.kind in (EventKind.SUCCEEDED, EventKind.CANCELLED)


def _check_runs_told(events: Sequence[Event], runs: Sequence[Run]) -> None:
    """Each run is told of once, by each kind of event at most, and by those that it went through."""
    kinds: dict[Any, list[str]] = defaultdict(list)
    for event in events:
        if event.run_id is not None:
            kinds[event.run_id].append(event.kind)
    for run in runs:
        mine = kinds.pop(run.id)
        assert len(mine) == len(set(mine)), (run, mine)
        assert (EventKind.PENDING in mine) == (run.pending_at is not None), (run, mine)
        assert (EventKind.RUNNING in mine) == (run.started_at is not None), (run, mine)
        assert (EventKind.PREEMPTED in mine) == (run.state == RunState.PREEMPTED), (run, mine)
        assert (EventKind.LEASE_EXPIRED in mine) == (run.state == RunState.LEASE_EXPIRED), (run, mine)
        assert (EventKind.LEASE_RETURNED in mine) == (run.state == RunState.LEASE_RETURNED), (run, mine)
    assert not kinds
