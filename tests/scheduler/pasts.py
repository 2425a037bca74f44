"""A past for tests: jobs of two queues with several runs over many hours, some of them reported late."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler.models import Decision, Executor, Job, JobSet, Run, RunError
from scheduler.models.clock import database_now
from scheduler.rollups import close_next_hour, hour_of
from scheduler.states import JobState, RunState
from tests.factories import make_executor, make_queue

CATEGORIES = ("oom", "disk", "")
ENDS = (RunState.SUCCEEDED, RunState.FAILED, RunState.PREEMPTED, RunState.LEASE_RETURNED, RunState.CANCELLED)


def this_hour() -> datetime:
    """The hour that is not over."""
    return hour_of(database_now())


def close_hours(most: int = 1_000) -> None:
    """Close hours that are over, at most so many."""
    for _ in range(most):
        if not close_next_hour():
            return


def decision_of(run: Run, verdict: str, *, at: datetime, used: int = 0, policy: str = "oom-grow") -> Decision:
    """A decision about a run; a retry is by the first rule."""
    return Decision(
        run=run, job_id=run.job_id, policy_name=policy, policy_version=1, verdict=verdict, policy_used_before=used,
        policy_used_after=used + 1, policy_limit=9, global_used_before=used, global_used_after=used + 1,
        global_limit=9, decided_at=at, rule_index=0 if verdict == "retry" else None,
    )  # fmt: skip


@dataclass(kw_only=True, slots=True)
class _Past:
    chance: random.Random
    executor: Executor
    job_sets: list[JobSet]
    jobs: list[Job] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def run(self, job: Job, number: int, state: RunState, at: datetime, **fields: Any) -> Run:
        made = Run(
            job=job, job_submitted_at=job.submitted_at, queue_id=job.queue_id, number=number, executor=self.executor, pool=self.executor.pool_id,
            state=state, leased_at=at, recorded_at=at, **{"node": "local-1", "node_id": "", "ended_at": at, **fields},
        )  # fmt: skip
        self.runs.append(made)
        return made


def make_past(hours: int, *, seed: int, jobs: int = 15) -> None:
    """So many jobs over so many hours."""
    queues = [make_queue(name) for name in ("nightly", "daily")]
    past = _Past(
        chance=random.Random(seed),  # noqa: S311 - a past is no secret
        executor=make_executor(nodes=3),
        job_sets=[JobSet.objects.create(queue=queue, name="set") for queue in queues],
    )
    for _ in range(jobs):
        _add_story(past, hours)
    Job.objects.bulk_create(past.jobs)
    Run.objects.bulk_create(past.runs)
    Decision.objects.bulk_create(past.decisions)
    RunError.objects.bulk_create(_errors(past.runs))


def _errors(runs: list[Run]) -> Iterator[RunError]:
    return (RunError(run=run, message=f"Run {run.number} failed") for run in runs if run.category)


def _add_story(past: _Past, hours: int) -> None:
    chance, job_set = past.chance, past.chance.choice(past.job_sets)
    at = this_hour() - timedelta(minutes=chance.randrange(60 * hours))
    job = Job(
        job_set=job_set, queue_id=job_set.queue_id, owner="alice", submitted_at=at, state=JobState.FAILED
    )
    past.jobs.append(job)
    retries = chance.randrange(1, 4)
    for used in range(retries):
        run = _add_failure(past, job, used + 1, at)
        policy = chance.choice(("grow", "move"))
        past.decisions.append(
            decision_of(run, "retry", at=at + timedelta(seconds=1), used=used, policy=policy)
        )
        at += timedelta(minutes=chance.randrange(1, 90))
    last = past.run(job, retries + 1, chance.choice(ENDS), at)
    if last.state == RunState.FAILED:
        past.decisions.append(decision_of(last, "fail_policy_limit", at=at, used=3, policy="grow"))
    job.run_count, job.state_changed_at, job.ended_at, job.recorded_at = last.number, at, at, at
    job.last_executor, job.last_node, job.last_pool = last.executor_id, last.node, last.pool


def _add_failure(past: _Past, job: Job, number: int, at: datetime) -> Run:
    chance = past.chance
    late = timedelta(hours=chance.choice((0, 0, 0, 2, 30)))
    return past.run(
        job, number, chance.choice((RunState.FAILED, RunState.FAILED, RunState.LEASE_EXPIRED)), at,
        ended_at=at - late, category=chance.choice(CATEGORIES), subcategory=chance.choice(("", "limit")),
        node=f"local-{chance.randrange(1, 4)}", core_seconds=chance.randrange(100),
        fingerprint=chance.choice(("aa", "bb", "")),
    )  # fmt: skip
