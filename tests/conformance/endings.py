"""Every way a run or a job can end badly, by the real verbs, for client_events.json: what clients and pages tell of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from policies.documents import policy_from_object
from policies.signals import ContainerEnd
from scheduler import client_events
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.jobfile import parse_job_file
from scheduler.models import Event, Executor, Job, RunError
from scheduler.models.clock import database_now
from scheduler.preempting import preempt_jobs
from scheduler.publishing import create_policy
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.states import EventKind
from scheduler.submission import submit_jobs
from tests.conformance.scenes import LABEL
from tests.factories import POD_SPEC, make_executor, make_job, make_queue, make_run
from tests.people import OLGA

MESSAGE = "what the executor saw\n\nand a hint"
CATEGORY = ("app-error", "net")
EXIT_CODE = 42


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What was told: of the run, of the job, and on pages."""

    run_event: str | None
    """The kind of the event of the run's own end; none where only the job is told of."""
    run_fields: frozenset[str]
    job_event: str | None
    payload: dict[str, Any]
    """Of the `failed` event."""
    seen: dict[str, Any]
    """On pages, by the names of the case files."""


@dataclass(kw_only=True)
class World:
    """A queue with a policy that retries everything, or nothing, or none; and a job that runs."""

    action: str = ""
    """The default action of the queue's policy; empty for no policy."""
    max_retries: int = 3

    def __post_init__(self) -> None:
        self.config = Configuration(
            retry_policy=RetryPolicyConfiguration(enabled=bool(self.action)),
            max_retries=self.max_retries,
            node_id_label=LABEL,
            indexed_node_labels=(LABEL,),
        )
        if self.action:
            policy = policy_from_object({"name": "p1", "retryLimit": 3, "defaultAction": self.action})
            create_policy(policy=policy, actor=OLGA, config=self.config, force=True)
        self.queue = make_queue(policies=("p1",) if self.action else ())
        self.executor = make_executor()

    def run(self) -> "World":
        job = make_job(self.queue, priority_class="armada-preemptible")
        self.run_id, self.job_id = str(make_run(job, executor=self.executor).id), job.id
        return self

    def report(self, state: ReportState, **fields: Any) -> "World":
        report = Report(run_id=self.run_id, state=state, **fields)
        record_reports(executor="local", reports=[report])
        return self

    def fall_silent(self) -> "World":
        silent_since = database_now() - timedelta(seconds=self.config.executor_timeout_seconds + 60)
        Executor.objects.update(heartbeat_at=silent_since)
        expire_leases(config=self.config)
        return self

    def end(self) -> Ending:
        """Settle, and look at what was told."""
        settle_runs(config=self.config)
        told = {row.kind: row.payload for row in Event.objects.filter(job=self.job_id)}
        of_run = next((kind for kind in OF_RUNS if kind in told), None)
        return Ending(
            run_event=of_run,
            run_fields=frozenset(told[of_run]) if of_run else frozenset(),
            job_event=EventKind.FAILED if EventKind.FAILED in told else None,
            payload=told.get(EventKind.FAILED, {}),
            seen=self._seen(),
        )

    def _seen(self) -> dict[str, Any]:
        job = Job.objects.get(id=self.job_id)
        seen = {"job_state": job.state, "job_error": job.rejected_because}
        if (run := job.runs.first()) is None:
            return seen
        error = RunError.objects.filter(run=run).first()
        told = {
            "run_state": run.state,
            "run_error": error.message if error else "",
            "exit_code": run.exit_code,
        }
        return seen | told


OF_RUNS = (EventKind.LEASE_RETURNED, EventKind.LEASE_EXPIRED)


def pod_error(action: str = "") -> Ending:
    ends = (ContainerEnd(name="main", exit_code=EXIT_CODE, message="exit"),)
    world = World(action=action).run()
    category, subcategory = CATEGORY
    fields = {"category": category, "subcategory": subcategory, "message": MESSAGE, "exit_code": EXIT_CODE}
    return world.report(ReportState.FAILED, reason="AppError", containers=ends, **fields).end()


def lease_returned(action: str = "", *, max_retries: int = 3) -> Ending:
    world = World(action=action, max_retries=max_retries).run()
    return world.report(ReportState.LEASE_RETURNED, message=MESSAGE, attempted=True).end()


def lease_expired(action: str = "") -> Ending:
    return World(action=action).run().fall_silent().end()


def preempted(action: str = "") -> Ending:
    world = World(action=action).run()
    preempt_jobs(job_ids=[world.job_id], reason=MESSAGE, actor=OLGA, config=world.config)
    return world.report(ReportState.CANCELLED).end()


def rejected(action: str = "") -> Ending:
    world = World(action=action)
    container = {**POD_SPEC["containers"][0], "resources": {"limits": {"cpu": "1000000", "memory": "1Gi"}}}
    jobs = [{"podSpec": {"containers": [container]}}]
    file = parse_job_file({"queue": world.queue.name, "jobSetId": "set", "jobs": jobs})
    [made] = submit_jobs(
        queue=file.queue, job_set=file.job_set, items=file.items, actor=OLGA, config=world.config
    )
    world.job_id = made.job_id
    return world.end()


def told_by_nobody(reason: str) -> Callable[[], Ending]:
    """What the vocabulary has for an error that no part of Tack makes."""

    def tell() -> Ending:
        category, subcategory = CATEGORY
        payload = client_events.failed(
            reason=reason, category=category, subcategory=subcategory, retryable=False
        )
        return Ending(
            run_event=None, run_fields=frozenset(), job_event=EventKind.FAILED, payload=payload, seen={}
        )

    return tell


def _beyond_its_run(ending: Ending) -> Ending:
    """Without the event of the run, which the executor's report brought before."""
    return replace(ending, run_event=None)


ENDINGS: dict[str, Callable[..., Ending]] = {
    "pod_error": pod_error,
    "pod_lease_returned": lease_returned,
    "lease_expired": lease_expired,
    "max_runs_exceeded (legacy lease returns)": lambda: _beyond_its_run(lease_returned(max_retries=0)),
    "max_runs_exceeded (policy verdict on a failed run)": lambda: pod_error("Fail"),
    "max_runs_exceeded (policy verdict on a lease expiry)": lambda: lease_expired("Fail"),
    "job_run_preempted": preempted,
    "gang_unschedulable": told_by_nobody(MESSAGE),
    "job_rejected": rejected,
    "anything else": told_by_nobody(""),
}
