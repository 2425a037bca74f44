"""What Tack answers, as values: jobs, runs, decisions, policies, queues, executors, events.

Names are the glossary's, times carry their zone, bytes are whole bytes. Each keeps the answer it came from in
`json`, for programs that print or store it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lookout.wire.errors import Problem


def _answer() -> Any:
    return field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """On whose behalf the token speaks."""

    name: str
    role: str = ""
    permissions: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    json: Mapping[str, Any] = _answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run failed, in the words of the executor's categories."""

    category: str
    subcategory: str = ""

    def __str__(self) -> str:
        return f"{self.category}/{self.subcategory}" if self.subcategory else self.category


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What is reserved for a job now, grown by its retries. `others` by name, in whole units."""

    cpu_millicores: int | None = None
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Retries used, of how many."""

    used: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChange:
    """A budget before and after a decision."""

    before: Budget | None = None
    after: Budget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a retry policy made of a failed run. `rule_index` counts from 0; none means the default action."""

    run_id: str
    job_id: str
    verdict: str
    reason: str = ""
    sentence: str = ""
    policy: str = ""
    version: int = 0
    rule_index: int | None = None
    policy_budget: BudgetChange | None = None
    global_budget: BudgetChange | None = None
    memory_from_bytes: int | None = None
    memory_to_bytes: int | None = None
    avoids_nodes: tuple[str, ...] = ()
    decided_at: datetime | None = None
    json: Mapping[str, Any] = _answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """How one container of a run ended."""

    name: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    init: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run ended badly, in the words of whoever saw it."""

    message: str = ""
    reason: str = ""
    containers: tuple[ContainerEnd, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One try of a job on one node. `number` is 1 for the first.

    `retryable` is None until it is decided, and for runs that did not fail.
    """

    run_id: str
    job_id: str
    number: int
    state: str
    queue: str = ""
    job_set_id: str = ""
    executor: str = ""
    node: str = ""
    pool: str = ""
    leased_at: datetime | None = None
    pending_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    category: str = ""
    subcategory: str = ""
    fingerprint: str = ""
    core_seconds: float = 0.0
    retryable: bool | None = None
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None
    memory_peak_bytes: int | None = None
    killed_by: str = ""
    enforced_by: str = ""
    undecided_because: str = ""
    undecided_sentence: str = ""
    error: RunError | None = None
    decision: Decision | None = None
    json: Mapping[str, Any] = _answer()

    @property
    def failure(self) -> Failure | None:
        """The run's category, where it has one."""
        return Failure(category=self.category, subcategory=self.subcategory) if self.category else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """Where a job ran last, and how that ended."""

    run_id: str
    state: str
    executor: str = ""
    node: str = ""
    pool: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: it keeps its id through every retry."""

    job_id: str
    queue: str
    job_set_id: str
    state: str
    client_id: str = ""
    owner: str = ""
    namespace: str = ""
    priority: int = 0
    priority_class: str = ""
    gang_id: str = ""
    state_changed_at: datetime | None = None
    submitted_at: datetime | None = None
    ended_at: datetime | None = None
    cancel_user: str = ""
    cancel_reason: str = ""
    preempt_user: str = ""
    preempt_reason: str = ""
    rejected_because: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    run_count: int = 0
    resources: Resources | None = None
    submitted_memory_bytes: int | None = None
    avoided_nodes: tuple[str, ...] = ()
    waiting_because: str = ""
    last_failure: Failure | None = None
    last_verdict: str = ""
    last_run: LastRun | None = None
    json: Mapping[str, Any] = _answer()

    @property
    def has_ended(self) -> bool:
        """Nothing follows: the job succeeded, failed, was cancelled, preempted or rejected."""
        return self.state in ("succeeded", "failed", "cancelled", "preempted", "rejected")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail(Job):
    """A job with its pod spec as submitted and all its runs, oldest first."""

    spec: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """A job of a submission. `created` is false where an earlier one with the same client id answers; a dry run
    makes no id.
    """

    job_id: str
    client_id: str = ""
    created: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue. `retry_policies` are in their order, `jobs` counts them by state."""

    name: str
    priority_factor: float = 1.0
    user_owners: tuple[str, ...] = ()
    group_owners: tuple[str, ...] = ()
    permissions: tuple[Any, ...] = ()
    cordoned: bool = False
    cordoned_by: str = ""
    cordon_reason: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    retry_policies: tuple[str, ...] = ()
    jobs: Mapping[str, int] = field(default_factory=dict)
    json: Mapping[str, Any] = _answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """One version of a retry policy: `policy` is its document.

    Of the version in force `problems` are what the executors heard of cannot do of it, `warnings` what else to know.
    """

    policy: Mapping[str, Any]
    version: int
    note: str = ""
    author: str = ""
    created_at: datetime | None = None
    queues: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    json: Mapping[str, Any] = _answer()

    @property
    def name(self) -> str:
        """The name in the document."""
        return str(self.policy.get("name", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingReason:
    """Why some jobs of a queue wait; `job_id` is the one of them that goes first."""

    reason: str
    jobs: int = 0
    job_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWaiting:
    """Why the jobs of a queue wait that go first in it; with `more`, others were not looked at."""

    reasons: tuple[WaitingReason, ...] = ()
    looked_at: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """CPU, memory and other resources of a node."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """What keeps jobs off a node that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of an executor: what it has, and what its active runs hold of it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True
    cordoned: bool = False
    cordoned_by: str = ""
    cordon_reason: str = ""
    memory_enforced_by: str = ""
    notes: tuple[str, ...] = ()
    capacity: Amounts | None = None
    used: Amounts | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCheck:
    """What is wrong with a document, what its author should know all the same, and a sentence for each rule."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """An executor as its last heartbeat described it. A silent one was not heard of for too long."""

    name: str
    pool: str = ""
    version: str = ""
    silent: bool = False
    cordoned: bool = False
    cordoned_by: str = ""
    cordon_reason: str = ""
    heartbeat_at: datetime | None = None
    nodes: tuple[Node, ...] = ()
    runs: int = 0
    json: Mapping[str, Any] = _answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a job. `id` counts within the job set; `fields` are named as on the wire."""

    id: int
    kind: str
    fields: Mapping[str, Any]

    @property
    def job_id(self) -> str:
        """The job it happened to."""
        return str(self.fields.get("jobId", ""))

    @property
    def created(self) -> datetime | None:
        """When it happened, by the database's clock."""
        text = self.fields.get("created")
        return datetime.fromisoformat(text) if isinstance(text, str) else None

    @property
    def reason(self) -> str:
        """Why, where the event says so."""
        return str(self.fields.get("reason") or "")

    @property
    def retryable(self) -> bool:
        """A failure after which the job is queued again."""
        return bool(self.fields.get("retryable"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Some events of a job set, in order; `last` is the number to go on from."""

    events: tuple[Event, ...] = ()
    last: int = 0
