"""Whole lives as scenarios.json tells them: each step by the words it stands under, by the real verbs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policies.documents import policy_from_object
from policies.signals import ContainerEnd
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import Lease, Report, ReportState
from scheduler.jobfile import parse_job_file
from scheduler.leasing import run_round
from scheduler.models import Event, Job, Run
from scheduler.publishing import create_policy
from scheduler.queries.work import work_for
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from scheduler.states import JobState
from scheduler.submission import submit_jobs
from tests.conformance.scenes import LABEL
from tests.conformance.telling import with_underscores
from tests.factories import POD_SPEC, make_executor, make_queue
from tests.people import OLGA

CONFIG = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), node_id_label=LABEL, indexed_node_labels=(LABEL,)
)
POLICY: dict[str, Any] = {
    "name": "stories",
    "retryLimit": 3,
    "defaultAction": "Fail",
    "rules": [
        {"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2}}}},
        {"action": "Retry", "onCategory": "infra", "mutate": {"affinity": {"avoidSameNode": True}}},
        {"action": "Retry", "onCategory": "gpu"},
    ],
}
OOM_TEXT = "Container main failed with exit code 137 because OOMKilled: \n"
RUNS = (ReportState.PENDING, ReportState.RUNNING)


@dataclass(kw_only=True)
class Life:
    """A job in a queue whose policy grows, moves or simply repeats what failed."""

    job_id: str = ""
    seen: int = 0
    """Events that were heard already."""
    lease: Lease | None = None

    def heard(self) -> list[dict[str, Any]]:
        """What clients heard since they listened last."""
        rows = list(Event.objects.order_by("number"))[self.seen :]
        self.seen += len(rows)
        return [
            {with_underscores(name): value for name, value in row.payload.items()}
            | {"type": with_underscores(row.kind)}
            for row in rows
        ]

    def submit(self) -> None:
        file = parse_job_file({"queue": "nightly", "jobSetId": "set", "jobs": [{"podSpec": POD_SPEC}]})
        [made] = submit_jobs(
            queue=file.queue, job_set=file.job_set, items=file.items, actor=OLGA, config=CONFIG
        )
        self.job_id = made.job_id

    def place(self, *states: ReportState) -> None:
        """The next run is leased, fetched, and begins."""
        assert run_round(pool="default", config=CONFIG).placed == 1
        [self.lease] = work_for(executor="local", known_runs=()).leases
        for state in states:
            self.report(state)

    def report(self, state: ReportState, **fields: Any) -> None:
        assert self.lease is not None
        report = Report(run_id=self.lease.run_id, state=state, **fields)
        record_reports(executor="local", reports=[report])

    def fail(self, category: str) -> None:
        self.report(ReportState.FAILED, category=category, message="pod failed")
        settle_runs(config=CONFIG)

    def pod(self) -> dict[str, str]:
        """Of the last lease."""
        assert self.lease is not None
        limit = self.lease.pod_spec["containers"][0]["resources"]["limits"]["memory"]
        return {"name": self.lease.pod_name.replace(self.job_id, "<jobId>"), "memory_limit": limit}


def begin(title: str) -> Life:
    """A life about to be: the fleet is as large as the title says, or has a node to spare."""
    make_executor("local", nodes=2 if "fleet of two nodes" in title else 3)
    create_policy(policy=policy_from_object(POLICY), actor=OLGA, config=CONFIG, force=True)
    make_queue("nightly", policies=("stories",))
    return Life()


def _first_run_fails(category: str) -> Callable[[Life], None]:
    def step(life: Life) -> None:
        life.submit()
        life.place(*RUNS)
        life.heard()
        life.fail(category)

    return step


def _runs_out_of_memory(life: Life) -> None:
    """The executor removes the remains; nobody is told yet."""


def _is_told_of_it(life: Life) -> None:
    end = ContainerEnd(name="main", exit_code=137, reason="OOMKilled")
    life.report(ReportState.FAILED, category="oom", message=OOM_TEXT, reason="OOM", containers=(end,))
    settle_runs(config=CONFIG)


def _second_run_fails(life: Life) -> None:
    life.place(*RUNS)
    life.fail("infra")


def _name_is_taken(life: Life) -> None:
    life.place()
    life.report(ReportState.LEASE_RETURNED, message="pods already exists", attempted=True)


def _lease_return_is_settled(life: Life) -> None:
    """Attempts remain: the job waits for a node it has not been to."""
    settle_runs(config=CONFIG)
    job, nodes = Job.objects.get(id=life.job_id), Run.objects.values_list("node_id", flat=True)
    assert job.state == JobState.QUEUED and set(job.avoided_nodes) == set(nodes)


STEPS: dict[str, Callable[[Life], None]] = {
    "submit": Life.submit,
    "first lease on node A": lambda life: life.place(*RUNS),
    "container OOM killed, category oom has action Delete": _runs_out_of_memory,
    "scheduler handles the run error": _is_told_of_it,
    "second lease": lambda life: life.place(*RUNS),
    "container exits zero": lambda life: life.report(ReportState.SUCCEEDED),
    "run 1 fails on node A": _first_run_fails("infra"),
    "run 2 is leased on node B and fails": _second_run_fails,
    "run 1 fails, pod retained, reported at once": _first_run_fails("gpu"),
    "run 2 is leased to the same cluster; creating the pod answers AlreadyExists": _name_is_taken,
    "legacy lease-return path": _lease_return_is_settled,
}
