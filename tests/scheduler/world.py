"""A small Tack to which things happen by chance: every action is a verb in earnest, chosen and filled by a seed."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import transaction

from policies.documents import policy_from_object
from scheduler.administration import attach_policies
from scheduler.cancelling import cancel_jobs, cancel_selected
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.cordoning import cordon_node
from scheduler.errors import Conflict, Invalid
from scheduler.executors.protocol import Report, ReportState
from scheduler.expiring import expire_leases
from scheduler.jobfile import parse_job_file
from scheduler.leasing import run_round
from scheduler.models import Executor, Job, Run
from scheduler.models.clock import database_now
from scheduler.preempting import preempt_jobs, preempt_selected
from scheduler.publishing import apply_policy, delete_policy
from scheduler.queries.work import work_for
from scheduler.reporting import record_reports
from scheduler.reprioritising import reprioritize_jobs, reprioritize_selected
from scheduler.selection import Selection
from scheduler.settling import settle_runs
from scheduler.states import ACTIVE_JOB_STATES, ACTIVE_RUN_STATES
from scheduler.submission import submit_jobs
from tests.factories import make_executor, make_policy, make_queue
from tests.people import OLGA

LABEL = "kubernetes.io/hostname"
QUEUES = ("nightly", "weekly")
JOB_SETS = ("a", "b")
EXECUTORS = {"local": 2, "other": 1}
CLASSES = ("armada-default", "armada-preemptible")
POLICIES = ("grow", "move")
CATEGORIES = ("oom", "oom", "", "disk")
ENDS = (ReportState.SUCCEEDED, ReportState.FAILED, ReportState.FAILED, ReportState.LEASE_RETURNED)
ON = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True, global_max_retries=5), indexed_node_labels=(LABEL,)
)


class _Killed(Exception):
    """The worker dies before it can commit."""


def document_of(name: str, chance: random.Random) -> dict[str, Any]:
    """A policy that grows or moves jobs, of limits and rules by chance."""
    growing = {"resources": {"memory": chance.choice([{"factor": 1.5}, {"static": "32Mi"}])}}
    mutation = growing if name == "grow" else {"affinity": {"avoidSameNode": True}}
    rule = {"action": "Retry", "onCategory": "oom", "mutate": mutation}
    return {
        "name": name,
        "retryLimit": chance.randint(0, 4),
        "defaultAction": chance.choice(["Retry", "Retry", "Fail"]),
        "rules": [rule] if chance.random() < 0.8 else [],
    }


@dataclass
class World:
    """Two queues, three nodes on two executors, two policies, and whatever came of it since."""

    chance: random.Random
    config: Configuration = ON
    known: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in EXECUTORS})
    """Executor → runs its agent knows."""
    did: list[str] = field(default_factory=list)

    @staticmethod
    def furnish() -> None:
        """Make the rows that everything begins with."""
        for name in POLICIES:
            make_policy(name)
        for name in QUEUES:
            make_queue(name, policies=POLICIES[:1])
        for name, nodes in EXECUTORS.items():
            make_executor(name, nodes=nodes)

    def act(self) -> None:
        """Do something, whatever it is."""
        (action,) = self.chance.choices(list(ACTIONS), weights=list(ACTIONS.values()))
        self.did.append(action.__name__)
        action(self)

    # What people do.

    def submit(self) -> None:
        """A few jobs, now and then a gang of two."""
        jobs = [self._job() for _ in range(self.chance.randint(1, 4))]
        if self.chance.random() < 0.2:
            gang = {
                "armadaproject.io/gangId": f"gang-{self.chance.getrandbits(30)}",
                "armadaproject.io/gangCardinality": "2",
            }
            jobs = [{**self._job(), "annotations": gang} for _ in range(2)]
            for job in jobs:
                job["podSpec"]["priorityClassName"] = CLASSES[0]
        queue, job_set = self.chance.choice(QUEUES), self.chance.choice(JOB_SETS)
        file = parse_job_file({"queue": queue, "jobSetId": job_set, "jobs": jobs})
        submit_jobs(queue=queue, job_set=job_set, items=file.items, actor=OLGA, config=self.config)

    def _job(self) -> dict[str, Any]:
        amounts = {
            "cpu": self.chance.choice(["100m", "900m"]),
            "memory": self.chance.choice(["64Mi", "300Mi"]),
        }
        container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
        spec = {"containers": [container], "priorityClassName": self.chance.choice(CLASSES)}
        return {"podSpec": spec, "priority": self.chance.randint(0, 3)}

    def cancel(self) -> None:
        """Some jobs by id, or a job set."""
        if self.chance.random() < 0.8:
            cancel_jobs(job_ids=self._jobs(2), actor=OLGA)
        else:
            cancel_selected(selection=self._selection(), actor=OLGA)

    def reprioritize(self) -> None:
        """Some jobs by id, or a job set."""
        priority = self.chance.randint(0, 3)
        if self.chance.random() < 0.5:
            reprioritize_jobs(job_ids=self._jobs(3), priority=priority, actor=OLGA)
        else:
            reprioritize_selected(selection=self._selection(), priority=priority, actor=OLGA)

    def preempt(self) -> None:
        """Some jobs by id, all or none of them, or whatever may give way on an executor."""
        if self.chance.random() < 0.8:
            with suppress(Conflict):
                at_work = {"state__in": ACTIVE_JOB_STATES} if self.chance.random() < 0.8 else {}
                wanted = self.chance.choice((*CLASSES[1:], *CLASSES))
                ids = self._jobs(2, priority_class=wanted, **at_work)
                preempt_jobs(job_ids=ids, actor=OLGA, config=self.config)
        else:
            selection = Selection(executor=self.chance.choice(list(EXECUTORS)))
            preempt_selected(selection=selection, actor=OLGA, config=self.config)

    def edit_policy(self) -> None:
        """A policy gets other limits and rules, or is made again."""
        document = document_of(self.chance.choice(POLICIES), self.chance)
        apply_policy(policy=policy_from_object(document), actor=OLGA, force=True, config=self.config)

    def delete_policy(self) -> None:
        """A policy goes, and is taken off its queues."""
        delete_policy(name=self.chance.choice(POLICIES), detach=True, actor=OLGA)

    def attach(self) -> None:
        """A queue gets other policies, as far as they exist."""
        names = self.chance.sample(POLICIES, self.chance.randint(0, 2))
        with suppress(Invalid):
            attach_policies(queue=self.chance.choice(QUEUES), policies=names, actor=OLGA)

    def configure(self) -> None:
        """The flag, the global limit, and what becomes of preempted jobs."""
        retries = RetryPolicyConfiguration(
            enabled=self.chance.random() < 0.7, global_max_retries=self.chance.randint(0, 5)
        )
        self.config = replace(self.config, retry_policy=retries, requeue_preempted=self.chance.random() < 0.5)

    def cordon(self) -> None:
        """A node is closed, or opened."""
        executor = self.chance.choice(list(EXECUTORS))
        node = f"{executor}-{self.chance.randint(1, EXECUTORS[executor])}"
        cordon_node(executor=executor, node=node, cordoned=self.chance.random() < 0.4, actor=OLGA)

    # What workers do.

    def round(self) -> None:
        """A round of the pool."""
        run_round(pool="default", config=self.config)

    def settle(self) -> None:
        """All that awaits it, in small batches."""
        while settle_runs(config=self.config, limit=self.chance.randint(1, 5)).more:
            pass

    def settle_and_die(self) -> None:
        """A worker that is killed with its batch written and not committed."""
        with suppress(_Killed), transaction.atomic():
            settle_runs(config=self.config, limit=2)
            raise _Killed

    def expire(self) -> None:
        """An executor is silent for too long, and is heard of again."""
        name = self.chance.choice(list(EXECUTORS))
        long_ago = database_now() - timedelta(seconds=self.config.executor_timeout_seconds + 1)
        Executor.objects.filter(name=name).update(heartbeat_at=long_ago)
        expire_leases(config=self.config)
        Executor.objects.filter(name=name).update(heartbeat_at=database_now())

    # What agents do.

    def work(self) -> None:
        """An agent asks for work and does what it is told; now and then it has lost what it knew."""
        name = self.chance.choice(list(EXECUTORS))
        known = self.known[name]
        if self.chance.random() < 0.05:
            known.clear()
        told = work_for(executor=name, known_runs=sorted(known))
        known.update(lease.run_id for lease in told.leases)
        known.difference_update(told.forget)
        ended = [Report(run_id=stop.run_id, state=ReportState.CANCELLED) for stop in told.stop]
        ended += [_failed(run_id, "internal", "pod-missing") for run_id in told.missed]
        self._send(name, [report for report in ended if self.chance.random() < 0.9])

    def report(self) -> None:
        """An agent tells of some runs: what it knows, in any order, late, twice, and of runs that are not its own."""
        name = self.chance.choice(list(EXECUTORS))
        runs = [str(run.id) for run in self._runs(4)]
        self._send(name, [self._report(run) for run in runs for _ in range(self.chance.randint(1, 3))])

    def _report(self, run_id: str) -> Report:
        if self.chance.random() < 0.5:
            return Report(run_id=run_id, state=self.chance.choice([ReportState.PENDING, ReportState.RUNNING]))
        state = self.chance.choice(ENDS)
        if state is ReportState.FAILED:
            return _failed(run_id, self.chance.choice(CATEGORIES))
        attempted = self.chance.random() < 0.5
        return Report(run_id=run_id, state=state, attempted=attempted, age_seconds=self.chance.random())

    def _send(self, executor: str, reports: Sequence[Report]) -> None:
        requeue = self.config.requeue_preempted
        record_reports(executor=executor, reports=reports, requeue_preempted=requeue)

    # Whom it happens to.

    def _jobs(self, most: int, **fields: Any) -> list[str]:
        """Mostly jobs that have not ended."""
        if self.chance.random() < 0.9:
            fields["ended_at"] = None
        ids = list(Job.objects.filter(**fields).order_by("id").values_list("id", flat=True))
        return self.chance.sample(ids, min(most, len(ids)))

    def _runs(self, most: int) -> list[Run]:
        """Mostly runs that go on, now and then ones that have ended."""
        runs = Run.objects.order_by("job_id", "number")
        found = list(runs.filter(state__in=ACTIVE_RUN_STATES) if self.chance.random() < 0.9 else runs)
        return self.chance.sample(found, min(most, len(found)))

    def _selection(self) -> Selection:
        """Of a job set, as far as there is one, or of a filter."""
        if self.chance.random() < 0.3:
            asked = self.chance.choice(
                ("runs=0", "category.any?=yes&state!=running", "retries>0&executor.any^=l")
            )
            return Selection(filter=f"queue={self.chance.choice(QUEUES)}&{asked}")
        states = self.chance.choice([(), ("queued",), ("running", "pending")])
        return Selection(
            queue=self.chance.choice(QUEUES), job_set=self.chance.choice(JOB_SETS), states=states
        )

    # How it ends.

    def come_to_rest(self) -> None:
        """Everything that can run does so, and succeeds; what is asked to end ends."""
        for name, nodes in EXECUTORS.items():
            for number in range(1, nodes + 1):
                cordon_node(executor=name, node=f"{name}-{number}", cordoned=False, actor=OLGA)
        while self._take_a_step():
            pass

    def _take_a_step(self) -> bool:
        self.settle()
        self.round()
        runs = list(Run.objects.filter(state__in=ACTIVE_RUN_STATES).values_list("id", "executor_id"))
        for name in EXECUTORS:
            told = work_for(executor=name, known_runs=[str(run) for run, of in runs if of == name])
            stopped = {stop.run_id for stop in told.stop}
            self._send(
                name,
                [
                    Report(
                        run_id=str(run),
                        state=ReportState.CANCELLED if str(run) in stopped else ReportState.SUCCEEDED,
                    )
                    for run, of in runs
                    if of == name
                ],
            )
        return bool(runs)


def _failed(run_id: str, category: str, subcategory: str = "") -> Report:
    return Report(
        run_id=run_id, state=ReportState.FAILED, category=category, subcategory=subcategory,
        message=f"Container main failed: {category}", reason="AppError", exit_code=1,
    )  # fmt: skip


ACTIONS: Mapping[Callable[[World], None], int] = {
    World.submit: 6, World.round: 12, World.work: 10, World.report: 12, World.settle: 8, World.settle_and_die: 2,
    World.expire: 1, World.cancel: 2, World.reprioritize: 3, World.preempt: 6, World.edit_policy: 3,
    World.delete_policy: 1, World.attach: 2, World.configure: 2, World.cordon: 2,
}  # fmt: skip
"""What may happen, and how often beside the others."""
