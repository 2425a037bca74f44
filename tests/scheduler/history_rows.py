"""A small history with everything in it, in rows and as plain Python, to compare answers of the database with."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from policies.decision import Verdict
from scheduler.models import Decision, Executor, Job, Run, RunError
from scheduler.models.clock import database_now
from scheduler.states import FAILED_RUN_STATES, JobState, RunState
from tests.factories import MEBI, make_executor, make_job, make_queue, make_run

GIBI = 1024 * MEBI


@dataclass(frozen=True, kw_only=True)
class PlainRun:
    """What can be asked about a run, by the names of the filter language; None is "no value"."""

    row: Run
    values: dict[str, Any]

    @property
    def is_failure(self) -> bool:
        return self.row.state in FAILED_RUN_STATES


@dataclass(frozen=True, kw_only=True)
class PlainJob:
    """What can be asked about a job."""

    row: Job
    values: dict[str, Any]
    runs: list[PlainRun] = field(default_factory=list)


def make_history() -> list[PlainJob]:
    """Jobs of two queues, with names that hold wildcards, and runs of every end."""
    now = database_now()
    places = [make_executor(name, nodes=0) for name in ("east", "we_st")]
    for name in ("nightly", "we%kly"):
        make_queue(name)
    jobs = [_make_job(number, now) for number in range(14)]
    for number, job in enumerate(jobs):
        _make_runs(number, job, places, now)
        _end(number, job, now)
    return [_plain(job) for job in Job.objects.select_related("job_set").order_by("id")]


_ENDS: dict[int, JobState] = {
    0: JobState.FAILED, 1: JobState.SUCCEEDED, 2: JobState.REJECTED, 3: JobState.FAILED, 5: JobState.CANCELLED,
    6: JobState.FAILED, 7: JobState.PREEMPTED, 9: JobState.FAILED, 11: JobState.SUCCEEDED,
}  # fmt: skip
_RUNS: dict[int, tuple[RunState, ...]] = {
    0: (RunState.FAILED,) * 3,
    1: (RunState.FAILED, RunState.SUCCEEDED),
    3: (RunState.FAILED, RunState.LEASE_RETURNED),
    4: (RunState.FAILED, RunState.RUNNING),
    5: (RunState.CANCELLED,),
    6: (RunState.LEASE_EXPIRED,),
    7: (RunState.FAILED, RunState.PREEMPTED),
    8: (RunState.LEASED,),
    9: (RunState.FAILED, RunState.FAILED),
    10: (RunState.LEASE_RETURNED, RunState.PENDING),
    11: (RunState.SUCCEEDED,),
}


def _make_job(number: int, now: datetime) -> Job:
    return make_job(
        ("nightly", "we%kly")[number % 2],
        job_set=("a/1", "a_1", "A%2", "ax1")[number % 4],
        owner=("alice", "bob", "al_ce")[number % 3],
        namespace=("default", "dev")[number // 2 % 2],
        client_id=None if number % 3 else f"client-{number}",
        priority=number % 4,
        priority_class=("", "armada-default", "armada-high")[number % 3],
        gang_id="gang-1" if number in (3, 4) else "",
        annotations=[{}, {"example.com/a": "x_1", "1": "one"}, {"example.com/a": "x%1"}, {"1": ""}][
            number % 4
        ],
        labels=[{}, {"team.any": "night"}][number % 2],
        cpu_request_millicores=(1_500, 100, 2_000)[number % 3],
        memory_bytes=(None, 64 * MEBI, 2 * GIBI)[number % 3],
        resources=[{}, {"nvidia.com/gpu": 2}, {"ephemeral-storage": GIBI, "nvidia.com/gpu": 1}][number % 3],
        submitted_at=now - timedelta(hours=number // 2),
    )


def _make_runs(number: int, job: Job, places: list[Executor], now: datetime) -> None:
    for turn, state in enumerate(_RUNS.get(number, ())):
        failed = state is RunState.FAILED
        category, subcategory = (("oom", "limit"), ("", ""), ("gpu_x", "xid"))[(number + turn) % 3]
        run = make_run(
            job,
            executor=places[(number + turn) % 2],
            state=state,
            node=("gpu-07", "gpu_07", "n%1")[(number + turn) % 3],
            pool=("default", "gpu")[number % 3 % 2],
            memory_peak_bytes=(None, 70 * MEBI, 9 * MEBI, 70 * MEBI)[(number + 2 * turn) % 4],
            core_seconds=float(turn * 100 + number),
            leased_at=now - timedelta(minutes=10 * number - turn),
            message=f"Container main: 100% of {turn}_MiB used",
            **({"category": category, "subcategory": subcategory} if failed else {}),
            **({"fingerprint": f"{number % 2:032d}", "killed_by": "memory"} if failed else {}),
            **({"exit_code": (1, 137, 0)[turn], "retryable": turn == 0} if failed else {}),
            **({"signal": 9} if failed and turn == 1 else {}),
            **({"undecided_because": "flag_off"} if failed and number == 3 else {}),
        )
        if failed and number != 3:
            _decide(run, turn)


def _decide(run: Run, turn: int) -> None:
    counts = (
        "policy_used_before",
        "policy_used_after",
        "policy_limit",
        "global_used_before",
        "global_used_after",
    )
    Decision.objects.create(
        run=run,
        job=run.job,
        policy_name=("oom-grow", "oom_grow")[turn % 2],
        policy_version=turn + 1,
        rule_index=None if turn else 0,
        verdict=Verdict.RETRY if turn == 0 else Verdict.FAIL_DEFAULT,
        reason="matched",
        decided_at=run.leased_at + timedelta(minutes=run.number * 7 % 5),
        global_limit=5,
        **dict.fromkeys(counts, 1),
    )


def _end(number: int, job: Job, now: datetime) -> None:
    Job.objects.filter(id=job.id).update(state_changed_at=now - timedelta(minutes=number * 5 % 13))
    if state := _ENDS.get(number):
        fields: dict[str, Any] = {"state": state, "ended_at": now - timedelta(minutes=number)}
        fields |= {"cancel_user": "olga", "cancel_reason": "too_slow"} if state == JobState.CANCELLED else {}
        fields |= {"rejected_because": "No room."} if state == JobState.REJECTED else {}
        Job.objects.filter(id=job.id).update(**fields)


def _plain(job: Job) -> PlainJob:
    runs = job.runs.select_related("decision", "error").order_by("number")
    return PlainJob(row=job, values=_values_of_job(job), runs=[_plain_run(run, job) for run in runs])


def _values_of_job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id, "queue": job.queue_id, "jobSet": job.job_set.name, "state": str(job.state), "owner": job.owner,
        "namespace": job.namespace, "clientId": job.client_id, "priority": job.priority,
        "priorityClass": job.priority_class or None, "gang": job.gang_id or None,
        "cpu": job.cpu_request_millicores, "memory": job.memory_limit_bytes or job.memory_request_bytes or 0,
        "ephemeralStorage": job.resources.get("ephemeral-storage", 0), "gpu": job.resources.get("nvidia.com/gpu", 0),
        "resource": job.resources, "submitted": job.submitted_at, "stateChanged": job.state_changed_at,
        "finished": job.ended_at, "runs": job.run_count, "retries": max(job.run_count - 1, 0),
        "annotation": job.annotations, "label": job.labels, "cancelUser": job.cancel_user or None,
        "activeJobSet": Job.objects.filter(job_set=job.job_set_id, ended_at=None).exists(),
        "cancelReason": job.cancel_reason or None, "rejectedBecause": job.rejected_because or None,
    }  # fmt: skip


def _plain_run(run: Run, job: Job) -> PlainRun:
    decision = Decision.objects.filter(run=run).first()
    error = RunError.objects.filter(run=run).first()
    values = {
        "id": run.id, "job": job.id, "queue": job.queue_id, "jobSet": job.job_set.name, "owner": job.owner,
        "namespace": job.namespace, "state": str(run.state), "runState": str(run.state), "number": run.number,
        "executor": run.executor_id, "node": run.node, "pool": run.pool, "leased": run.leased_at,
        "started": run.started_at, "finished": run.ended_at, "exitCode": run.exit_code, "signal": run.signal,
        "coreSeconds": run.core_seconds, "memoryPeak": run.memory_peak_bytes, "killedBy": run.killed_by or None,
        "retryable": run.retryable, "undecided": str(run.undecided_because) or None,
        "category": run.category or None, "subcategory": run.subcategory or None,
        "error": (error.message or None) if error else None, "reason": (error.reason or None) if error else None,
        "fingerprint": run.fingerprint or None, "verdict": decision.verdict if decision else None,
        "policy": decision.policy_name if decision else None,
        "policyVersion": decision.policy_version if decision else None,
        "ruleIndex": decision.rule_index if decision else None, "decided": decision.decided_at if decision else None,
        "run": run.id if decision else None,
    }  # fmt: skip
    return PlainRun(row=run, values=values)


def all_runs(jobs: list[PlainJob]) -> Iterator[PlainRun]:
    """Every run of the history."""
    return (run for job in jobs for run in job.runs)
