"""A case of scenarios.json on the database: configuration, policies, fleet, job and runs, as the case gives them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from policies.documents import policy_from_object
from policies.quantity import parse_bytes
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.models import Executor, Job, Run
from scheduler.models.clock import database_now
from scheduler.placement import Requirements
from scheduler.priorityclasses import DEFAULT_CLASSES, ClassConfiguration
from scheduler.publishing import create_policy
from scheduler.queries.schedulability import Answer, FleetCheck
from scheduler.settlement import FAIL_FAST
from scheduler.states import RunState
from tests.conformance.cases import Case
from tests.factories import make_executor, make_job, make_node, make_policy, make_queue, make_run
from tests.people import OLGA

LABEL = "kubernetes.io/hostname"
PLENTY = 1 << 50
URGENT = "urgent"
"""A priority class that goes before those of the cases."""
CLASSES = {**DEFAULT_CLASSES, URGENT: ClassConfiguration(priority=2_000)}
UNREADABLE = "Perhaps"
"""A default action nobody can read."""


class Probe(FleetCheck):
    """The real check of the fleet, counted, and in trouble where the case says so."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__(clock=self._now)
        self.calls = 0
        self._answers_of_case = [Answer(answer) for answer in answers]
        self._time = 0.0
        self._late = False

    def ask(self, wanted: Iterator[Requirements] | Any, *, config: Configuration) -> Any:
        answer = self._answers_of_case[self.calls] if self.calls < len(self._answers_of_case) else None
        self.calls += 1
        self._late = answer is Answer.NO_ANSWER
        if answer is Answer.ERROR:  # a fleet that nobody can look at
            config = replace(config, executor_timeout_seconds=float("nan"))
        return super().ask(wanted, config=config)

    def _now(self) -> float:
        self._time += 3_600.0 if self._late else 0.0
        return self._time


@dataclass(kw_only=True)
class Scene:
    """A case on the database, before and after."""

    case: Case
    config: Configuration
    probe: Probe
    run: Run | None
    job_id: str = ""
    queued_version: int
    """Before the stimulus."""
    our_words: str = ""
    """What we said where the case puts a reason of its own in the scheduler's mouth."""
    already_told: list[str] = field(default_factory=list)

    @property
    def job(self) -> Job:
        return Job.objects.get(id=self.job_id)

    def ran(self) -> Run:
        """The run the stimulus is about, as it is now."""
        assert self.run is not None
        return Run.objects.get(id=self.run.id)


def known(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The value, every key of which somebody reads."""
    if surplus := set(value) - set(names):
        raise KeyError(f"The runner does not know {sorted(surplus)}.")
    return value


def set_up(case: Case) -> Scene:
    """Everything the case gives, with its last run at work."""
    written = case.given["job"].get("memory_request_and_limit")
    memory_bytes = parse_bytes(written) if written else None
    config = config_of(case)
    _publish(case, config)
    executor = _make_fleet(case, memory_bytes)
    job = _make_job(case, memory_bytes)
    return Scene(
        case=case,
        config=config,
        probe=Probe(case.given["schedulability_probe"]["answers"]),
        run=_make_runs(case, job, executor),
        job_id=job.id,
        queued_version=job.queued_version,
    )


def config_of(case: Case) -> Configuration:
    given = known(
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
        priority_classes=CLASSES,
    )


def _publish(case: Case, config: Configuration) -> None:
    for policy in case.given["policies"]:
        create_policy(policy=policy_from_object(policy), actor=OLGA, config=config)
    for name in case.given["queue_retry_policies"]:
        if name not in [policy["name"] for policy in case.given["policies"]]:
            make_policy(name, defaultAction=UNREADABLE)  # attached, and nobody can read it


def _make_fleet(case: Case, memory_bytes: int | None) -> Executor:
    """Nodes that give the answers of the case: too small for a grown job, or no other than those tried."""
    probe = known(case.given["schedulability_probe"], "answers", "calls")
    asked = ["grown", "moved"] if "memory" in str(case.given["policies"]) else ["moved"]
    refused = {what for what, answer in zip(asked, probe["answers"], strict=False) if answer == "no_fit"}
    executor = make_executor("local", nodes=0)
    names = {run["node"] for run in case.given["job"]["runs"]} | (set() if "moved" in refused else {"spare"})
    for name in sorted(names):
        make_node(executor, name=name, memory_bytes=memory_bytes if "grown" in refused else PLENTY)
    return executor


def _make_job(case: Case, memory_bytes: int | None) -> Job:
    given = known(
        case.given["job"], "fail_fast", "gang_cardinality", "preemptible", "queued_version", "queued",
        "scheduling_info_version", "runs", "memory_request_and_limit", "memory_record",
    )  # fmt: skip
    factor, static_bytes = memory_record(case)
    gang = {"gang_id": "together", "gang_cardinality": given["gang_cardinality"]}
    queue = make_queue("nightly", policies=tuple(case.given["queue_retry_policies"]))
    return make_job(
        queue,
        memory_bytes=memory_bytes,
        queued_version=given["queued_version"],
        priority_class="armada-preemptible" if given["preemptible"] else "armada-default",
        annotations={FAIL_FAST: "true"} if given["fail_fast"] else {},
        memory_factor=factor,
        memory_static_bytes=static_bytes,
        **(gang if given["gang_cardinality"] > 1 else {}),
    )


def memory_record(case: Case) -> tuple[float, int]:
    """Factor and static bytes the job had grown by before."""
    record = known(case.given["job"].get("memory_record", {}), "memory_factor", "memory_static")
    return float(record.get("memory_factor") or 0), parse_bytes(record.get("memory_static") or "0")


def _make_runs(case: Case, job: Job, executor: Executor) -> Run | None:
    """Every run before the last was settled; the last one is at work, unless the job was requeued after it."""
    if not case.given["job"]["runs"]:
        return None
    *earlier, last = case.given["job"]["runs"]
    for run in earlier:
        _make_settled_run(run, job, executor)
    if case.given["job"].get("queued"):
        made = _make_settled_run(last, job, executor)
        Job.objects.filter(id=job.id).update(state="queued")
        return made
    known(last, "state", "node", "returned", "attempted", "ever_preempted")
    return make_run(
        job, executor=executor, state=RunState.RUNNING, node=last["node"], priority_class=job.priority_class
    )


def _make_settled_run(run: Mapping[str, Any], job: Job, executor: Executor) -> Run:
    known(run, "state", "node", "returned", "attempted", "ever_preempted")
    state = RunState.LEASE_RETURNED if run["returned"] else RunState(run["state"])
    return make_run(
        job,
        executor=executor,
        state=RunState.PREEMPTED if run["ever_preempted"] else state,
        node=run["node"],
        attempted=run["attempted"],
        settled_at=database_now(),
    )
