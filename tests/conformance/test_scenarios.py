"""scenarios.json: one thing happens to a job, and everything that follows is as recorded."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from policies.documents import policy_from_object
from policies.quantity import parse_bytes
from policies.signals import ContainerEnd
from scheduler.cancelling import cancel_jobs
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import Report, ReportState
from scheduler.leasing import LEASE_EXPIRED, expire_leases
from scheduler.models import Decision, Event, Executor, Job, Run, RunError
from scheduler.models.clock import database_now
from scheduler.placement import fits_somewhere
from scheduler.publishing import create_policy
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.states import RunState
from tests.conformance.cases import Case, cases
from tests.factories import make_executor, make_job, make_node, make_policy, make_queue, make_run
from tests.people import OLGA

pytestmark = pytest.mark.django_db

LABEL = "kubernetes.io/hostname"
PLENTY = 1 << 50
GIVEN = ("config", "queue_retry_policies", "policies", "job", "stimulus", "schedulability_probe",
         "client_events_already_sent_by_executor_report")  # fmt: skip
EXPECTED = ("scheduler_events", "client_events", "job_state_after", "decision_metric",
            "gang_skip_metric_policy", "lookout")  # fmt: skip

NOT_BUILT = {
    "preempted_by_scheduler": "there is no preemption yet",
    "preemption_requested": "there is no preemption yet",
    "run_failed_and_reprioritised": "priorities cannot be changed yet",
    "submit_check_failed": "told where jobs are submitted: the fleet refuses them, nobody else",
}


@dataclass(kw_only=True)
class Scene:
    """A case on the database, before and after."""

    case: Case
    config: Configuration
    run: Run
    checks: int = 0
    """How often the fleet was asked whether jobs fit."""
    begin: int = 0
    """The number of the last event before the stimulus."""

    @property
    def job(self) -> Job:
        return Job.objects.get(id=self.run.job_id)


def _known(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    if surplus := set(value) - set(names):
        raise KeyError(f"The runner does not know {sorted(surplus)}.")
    return value


def _config(case: Case) -> Configuration:
    given = _known(
        case.given["config"],
        "flag_enabled",
        "global_max_retries",
        "default_policy_name",
        "max_attempted_runs",
    )
    return Configuration(
        retry_policy=RetryPolicyConfiguration(
            enabled=given["flag_enabled"],
            global_max_retries=given["global_max_retries"],
            default_policy_name=given["default_policy_name"],
        ),
        max_retries=given["max_attempted_runs"] - 1,
        node_id_label=LABEL,
        indexed_node_labels=(LABEL,),
    )


def _publish(case: Case) -> None:
    for policy in case.given["policies"]:
        create_policy(policy=policy_from_object(policy), actor=OLGA, config=_config(case))
    for name in case.given["queue_retry_policies"]:
        if name not in [policy["name"] for policy in case.given["policies"]]:
            make_policy(name, defaultAction="Perhaps")  # attached, and nobody can read it


def _make_fleet(case: Case, memory_bytes: int | None) -> Executor:
    """Nodes that give the answers of the case: too small for a grown job, or no other than those tried."""
    probe = _known(case.given["schedulability_probe"], "answers", "calls")
    asked = ["grown", "moved"] if "memory" in str(case.given["policies"]) else ["moved"]
    refused = {what for what, answer in zip(asked, probe["answers"], strict=False) if FITS[answer] is False}
    executor = make_executor("local", nodes=0)
    names = {run["node"] for run in case.given["job"]["runs"]} | (set() if "moved" in refused else {"spare"})
    for name in sorted(names):
        make_node(executor, name=name, memory_bytes=memory_bytes if "grown" in refused else PLENTY)
    return executor


FITS = {"fits": True, "no_fit": False, "no_answer": False}


def _make_job(case: Case, memory_bytes: int | None) -> Job:
    given = _known(
        case.given["job"], "fail_fast", "gang_cardinality", "preemptible", "queued_version", "queued",
        "scheduling_info_version", "runs", "memory_request_and_limit", "memory_record",
    )  # fmt: skip
    record = _known(given.get("memory_record", {}), "memory_factor", "memory_static")
    queue = make_queue("nightly", policies=tuple(case.given["queue_retry_policies"]))
    return make_job(
        queue,
        memory_bytes=memory_bytes,
        queued_version=given["queued_version"],
        annotations={"armadaproject.io/failFast": "true"} if given["fail_fast"] else {},
        memory_factor=float(record.get("memory_factor") or 0),
        memory_static_bytes=parse_bytes(record.get("memory_static") or "0"),
    )


def _make_runs(case: Case, job: Job, executor: Executor) -> Run:
    """Every run before the last was settled; the last one is at work, unless the job was requeued after it."""
    *earlier, last = case.given["job"]["runs"]
    for run in earlier:
        _make_settled_run(run, job, executor)
    if case.given["job"].get("queued"):
        made = _make_settled_run(last, job, executor)
        Job.objects.filter(id=job.id).update(state="queued")
        return made
    return make_run(job, executor=executor, state=RunState.RUNNING, node=last["node"])


def _make_settled_run(run: Mapping[str, Any], job: Job, executor: Executor) -> Run:
    _known(run, "state", "node", "returned", "attempted", "ever_preempted")
    if run["state"] == "preempted" or run["ever_preempted"]:
        pytest.skip("there is no preemption yet")
    state = RunState.LEASE_RETURNED if run["returned"] else RunState(run["state"])
    return make_run(
        job,
        executor=executor,
        state=state,
        node=run["node"],
        attempted=run["attempted"],
        settled_at=database_now(),
    )


def _report(scene: Scene, state: ReportState) -> None:
    error = _known(
        scene.case.given["stimulus"].get("run_error") or {}, "reason_kind", "failure_category", "message",
        "failure_subcategory", "containers", "run_attempted",
    )  # fmt: skip
    ends = tuple(
        ContainerEnd(**_known(each, "name", "exit_code", "message")) for each in error.get("containers", ())
    )
    report = Report(
        run_id=str(scene.run.id),
        state=state,
        category=error.get("failure_category", ""),
        subcategory=error.get("failure_subcategory", ""),
        message=error.get("message", ""),
        containers=ends,
        attempted=error.get("run_attempted", True),
    )
    record_reports(executor="local", reports=[report])


def _fall_silent(scene: Scene) -> None:
    silent_since = database_now() - timedelta(seconds=scene.config.executor_timeout_seconds + 60)
    Executor.objects.update(heartbeat_at=silent_since)
    expire_leases(config=scene.config)


def _fail_and_cancel(scene: Scene) -> None:
    cancel_jobs(job_ids=[scene.run.job_id], actor=OLGA)
    scene.begin = Event.objects.count()
    _report(scene, ReportState.FAILED)


STIMULI: dict[str, Callable[[Scene], None]] = {
    "run_failed": lambda scene: _report(scene, ReportState.FAILED),
    "run_succeeded": lambda scene: _report(scene, ReportState.SUCCEEDED),
    "lease_returned": lambda scene: _report(scene, ReportState.LEASE_RETURNED),
    "executor_heartbeat_stale": _fall_silent,
    "run_failed_and_cancel_requested": _fail_and_cancel,
}


@pytest.fixture
def scene(case: Case, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The case, played."""
    kind = _known(case.given["stimulus"], "kind", "run_error", "reason")["kind"]
    if kind in NOT_BUILT:
        pytest.skip(NOT_BUILT[kind])
    if case.given["job"]["gang_cardinality"] > 1:
        pytest.skip("there are no gangs yet")
    written = case.given["job"].get("memory_request_and_limit")
    memory_bytes = parse_bytes(written) if written else None
    _publish(case)
    executor = _make_fleet(case, memory_bytes)
    run = _make_runs(case, _make_job(case, memory_bytes), executor)
    scene = Scene(case=case, config=_config(case), run=run)

    def count(*args: Any, **options: Any) -> Any:
        scene.checks += 1
        return fits_somewhere(*args, **options)

    monkeypatch.setattr("scheduler.settling.fits_somewhere", count)
    STIMULI[kind](scene)
    settle_runs(config=scene.config)
    return scene


def _client_events(scene: Scene) -> list[dict[str, Any]]:
    rows = Event.objects.filter(number__gt=scene.begin).order_by("number")
    told = [{"type": _with_underscores(row.kind)} | _underscored(row.payload) for row in rows]
    for event in scene.case.given.get("client_events_already_sent_by_executor_report", ()):
        assert told.pop(0)["type"] == event["type"]
    return told


def _underscored(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {_with_underscores(name): value for name, value in payload.items()}


def _with_underscores(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _scheduler_events(scene: Scene) -> list[dict[str, Any]]:
    events = [_SCHEDULER_EVENTS[event["type"]](event) for event in _client_events(scene)]
    run = Run.objects.get(id=scene.run.id)
    if run.undecided_because == "cancelled":
        events.insert(0, {"type": "JobRunCancelled"})
    if scene.job.queued_version > scene.case.given["job"]["queued_version"]:
        events.append(_requeue(scene))
    return events


def _requeue(scene: Scene) -> dict[str, Any]:
    given, job = scene.case.given["job"], scene.job
    before = _known(given.get("memory_record", {}), "memory_factor", "memory_static").get("memory_factor", 0)
    changes = (job.memory_factor != before) + bool(job.avoided_nodes)
    return {
        "type": "JobRequeued",
        "queued_version": job.queued_version,
        "scheduling_info_version": given["scheduling_info_version"] + changes,
        "avoid_nodes": sorted(job.avoided_nodes),
        "memory_bytes": job.memory_request_bytes,
        "memory_record": {"memory_factor": job.memory_factor, "memory_static": ""},
    }


def _job_errors(event: Mapping[str, Any]) -> dict[str, Any]:
    kind = "max_runs_exceeded"
    if "cause" in event:
        kind = "pod_error"
    elif event["reason"] == LEASE_EXPIRED:
        kind = "lease_expired"
    return {
        "type": "JobErrors",
        "terminal": not event["retryable"],
        "reason_kind": kind,
        "failure_category": event["failure_category"],
        "failure_subcategory": event["failure_subcategory"],
        "retry_policy_name": event.get("retry_policy_name", ""),
        "message": event["reason"],
    }


_EXPIRED_RUN = {
    "type": "JobRunErrors",
    "terminal": True,
    "reason_kind": "lease_expired",
    "failure_category": "internal",
    "failure_subcategory": "lease-expired",
    "retry_policy_name": "",
    "message": LEASE_EXPIRED,
}
_SCHEDULER_EVENTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "failed": _job_errors,
    "lease_expired": lambda _: _EXPIRED_RUN,
    "succeeded": lambda _: {"type": "JobSucceeded"},
    "cancelled": lambda _: {"type": "CancelledJob"},
}


def _seen_on_pages(scene: Scene) -> dict[str, Any]:
    run = Run.objects.get(id=scene.run.id)
    error = RunError.objects.filter(run=run).first()
    return {
        "run_state": run.state,
        "run_error": error.message if error else "",
        "run_failure_category": run.category,
        "run_failure_subcategory": run.subcategory,
        "job_state": scene.job.state,
    }


def _on_listed_keys(actual: Sequence[dict[str, Any]], listed: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The events on the keys that the case lists; a list of another length is compared whole."""
    if len(actual) != len(listed):
        return list(actual)
    return [
        {key: value for key, value in one.items() if key in wanted}
        for one, wanted in zip(actual, listed, strict=True)
    ]


@pytest.mark.parametrize("case", cases("scenarios.json", "scenarios"))
def test_what_follows_is_as_recorded(case: Case, scene: Scene) -> None:
    case.refuse_unknown_keys(GIVEN, EXPECTED)
    decision = Decision.objects.filter(run=scene.run).first()
    actual = {
        "scheduler_events": _on_listed_keys(_scheduler_events(scene), case.expect["scheduler_events"]),
        "client_events": _on_listed_keys(_client_events(scene), case.expect["client_events"]),
        "job_state_after": scene.job.state,
        "decision_metric": {"policy": decision.policy_name, "decision": decision.verdict}
        if decision
        else None,
        "gang_skip_metric_policy": None,
    }
    if listed := case.expect.get("lookout"):
        actual["lookout"] = {key: value for key, value in _seen_on_pages(scene).items() if key in listed}
    case.check(actual)
    assert scene.checks <= case.given["schedulability_probe"]["calls"]
    if not scene.config.retry_policy.enabled:
        assert not any("retry_policy_name" in event for event in _client_events(scene))
