"""What happens to the job of a scenario: each stimulus by the real verbs, as an executor, a person or time would."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from policies.signals import ContainerEnd
from scheduler.cancelling import cancel_jobs
from scheduler.errors import Conflict
from scheduler.executors.protocol import Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.jobfile import parse_job_file
from scheduler.leasing import run_round
from scheduler.models import Event, Executor, Job, Node
from scheduler.models.clock import database_now
from scheduler.preempting import preempt_jobs
from scheduler.reporting import record_reports
from scheduler.reprioritising import reprioritize_jobs
from scheduler.settling import settle_runs
from scheduler.states import EventKind
from scheduler.submission import submit_jobs
from tests.conformance.scenes import URGENT, Scene, known
from tests.factories import POD_SPEC
from tests.people import OLGA


def play(scene: Scene) -> None:
    """Let it happen, and settle what awaits it."""
    stimulus = known(scene.case.given["stimulus"], "kind", "run_error", "reason")
    STIMULI[stimulus["kind"]](scene)
    settle(scene)


def settle(scene: Scene) -> None:
    settle_runs(config=scene.config, fleet=scene.probe)


def _reported(state: ReportState) -> Callable[[Scene], None]:
    return lambda scene: _report(scene, state)


def _report(scene: Scene, state: ReportState) -> None:
    error = known(
        scene.case.given["stimulus"].get("run_error") or {}, "reason_kind", "failure_category", "message",
        "failure_subcategory", "containers", "run_attempted",
    )  # fmt: skip
    ends = tuple(
        ContainerEnd(**known(each, "name", "exit_code", "message")) for each in error.get("containers", ())
    )
    report = Report(
        run_id=str(scene.ran().id),
        state=state,
        category=error.get("failure_category", ""),
        subcategory=error.get("failure_subcategory", ""),
        message=error.get("message", ""),
        containers=ends,
        attempted=error.get("run_attempted", True),
    )
    requeue = scene.config.requeue_preempted
    record_reports(executor="local", reports=[report], requeue_preempted=requeue)


def _fall_silent(scene: Scene) -> None:
    silent_since = database_now() - timedelta(seconds=scene.config.executor_timeout_seconds + 60)
    Executor.objects.update(heartbeat_at=silent_since)
    expire_leases(config=scene.config)


def _fail_and_cancel(scene: Scene) -> None:
    cancel_jobs(job_ids=[scene.job_id], actor=OLGA)
    _report(scene, ReportState.FAILED)


def _fail_and_reprioritise(scene: Scene) -> None:
    reprioritize_jobs(job_ids=[scene.job_id], priority=scene.job.priority + 1, actor=OLGA)
    _report(scene, ReportState.FAILED)


def _ask_to_give_way(scene: Scene) -> None:
    """A job that may not be preempted is refused, and nothing comes of it."""
    reason = scene.case.given["stimulus"]["reason"]
    with suppress(Conflict):
        preempt_jobs(job_ids=[scene.job_id], reason=reason, actor=OLGA, config=scene.config)
        _report(scene, ReportState.CANCELLED)


def _take_its_place(scene: Scene) -> None:
    """A job of a higher class wants the only room there is."""
    Node.objects.exclude(name=scene.ran().node).delete()
    Node.objects.update(cpu_millicores=scene.ran().cpu_request_millicores)
    job: dict[str, Any] = {"podSpec": {**POD_SPEC, "priorityClassName": URGENT}}
    _submit(scene, job, job_set="urgent")
    run_round(pool="default", config=scene.config)
    told = Event.objects.get(job=scene.job_id, kind=EventKind.PREEMPTED)
    scene.our_words = told.payload["reason"]


def _be_refused(scene: Scene) -> None:
    """The job comes again, with more than any node has."""
    Job.objects.filter(id=scene.job_id).delete()
    container = {**POD_SPEC["containers"][0], "resources": {"limits": {"cpu": "1000000", "memory": "1Gi"}}}
    scene.job_id = _submit(scene, {"podSpec": {"containers": [container]}}, job_set="set")
    scene.already_told = [EventKind.SUBMITTED, EventKind.QUEUED]
    scene.our_words, scene.queued_version = scene.job.rejected_because, scene.job.queued_version


def _submit(scene: Scene, job: dict[str, Any], *, job_set: str) -> str:
    file = parse_job_file({"queue": "nightly", "jobSetId": job_set, "jobs": [job]})
    [made] = submit_jobs(
        queue=file.queue, job_set=file.job_set, items=file.items, actor=OLGA, config=scene.config
    )
    return made.job_id


STIMULI: dict[str, Callable[[Scene], None]] = {
    "run_failed": _reported(ReportState.FAILED),
    "run_succeeded": _reported(ReportState.SUCCEEDED),
    "lease_returned": _reported(ReportState.LEASE_RETURNED),
    "executor_heartbeat_stale": _fall_silent,
    "run_failed_and_cancel_requested": _fail_and_cancel,
    "run_failed_and_reprioritised": _fail_and_reprioritise,
    "preemption_requested": _ask_to_give_way,
    "preempted_by_scheduler": _take_its_place,
    "submit_check_failed": _be_refused,
}
