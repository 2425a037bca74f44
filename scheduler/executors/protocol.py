"""What an executor, its agent and the scheduler say to each other: leases, observations, reports.

Values only. Ages are seconds before "now" of the one who speaks, so that clocks need not agree; memory is
whole bytes, CPU whole millicores. The same values travel as JSON over the executor API.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from policies.failures import ContainerEnd, Disposition, Failure, Signals

type PodSpec = Mapping[str, Any]
"""A pod spec as in a job file: JSON objects, arrays, texts and numbers."""


class ReportState(StrEnum):
    """What a report says about a run. All but the first two end it."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LEASE_RETURNED = "leaseReturned"
    CANCELLED = "cancelled"

    @property
    def is_end(self) -> bool:
        """Nothing follows for this run."""
        return self not in (ReportState.PENDING, ReportState.RUNNING)


class KilledBy(StrEnum):
    """What ended a run that did not end by itself."""

    NOTHING = ""
    MEMORY = "memory"
    DEADLINE = "deadline"
    STOP = "stop"
    SIGNAL = "signal"


class EnforcedBy(StrEnum):
    """Who holds a run to its memory limit: a rung of the ladder."""

    NOBODY = ""
    CGROUP2 = "cgroup2"
    CGROUP1 = "cgroup1"
    POLL = "poll"


class Outcome(StrEnum):
    """What became of a report. The agent keeps a report until it hears one of these."""

    RECORDED = "recorded"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class RunPhase(StrEnum):
    """Where a run stands on its executor."""

    PENDING = "pending"
    """Accepted; init containers may be at work."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """Neither at work nor ended as far as anybody can tell: its node or its runner went away."""

    @property
    def is_end(self) -> bool:
        """The run does nothing any more."""
        return self in (RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.LOST)


class Trouble(StrEnum):
    """Why a run is no good although it has not ended by itself. What an agent does about each is in `agent.judging`."""

    NOT_PLACED = "not placed"
    """Nothing took it in time; the job was not tried."""
    START_DELAYED = "start delayed"
    """It does not start, and may elsewhere."""
    START_IMPOSSIBLE = "start impossible"
    """It does not start and would not anywhere."""
    STARTED_LATE = "started late"
    """It started after all, when it was being removed because it did not."""
    OVERDUE = "overdue"
    """It goes on after its deadline and the grace that follows."""
    WILL_NOT_END = "will not end"
    """Somebody else asked for its end, and it does not come."""
    TAKEN_AWAY = "taken away"
    """Somebody else removed it."""
    VANISHED = "vanished"
    """It was at work, and now there is nothing of it."""
    NEVER_APPEARED = "never appeared"
    """It was accepted, and nothing of it was ever seen: its lease can be handed out again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryDescription:
    """A category an executor knows, and what becomes of the remains of a run that ends in it."""

    name: str
    disposition: Disposition


class TaintEffect(StrEnum):
    """What a taint does to runs that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaintDescription:
    """A taint of a node, as in Kubernetes."""

    key: str
    value: str = ""
    effect: TaintEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDescription:
    """A node as its executor sees it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_millicores: int
    memory_bytes: int
    resources: Mapping[str, int] = field(default_factory=dict)
    """Other resources by name, in whole units (bytes for storage)."""
    taints: Sequence[TaintDescription] = ()
    schedulable: bool = True
    memory_enforced_by: EnforcedBy = EnforcedBy.NOBODY
    notes: Sequence[str] = ()
    """Sentences for the node's page: what this node ignores or cannot do, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """An executor is there, and this is what it has."""

    executor: str
    pool: str
    version: str
    agent_time: str
    """RFC 3339, only to show how far the clocks are apart."""
    nodes: Sequence[NodeDescription]
    categories: Sequence[CategoryDescription] = ()
    tracked_node_labels: Sequence[str] = ()
    honours: Sequence[str] = ()
    """Paths of the pod spec that the executor acts on; see `unhonoured_fields`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """One run, handed to an executor."""

    run_id: str
    job_id: str
    job_set_id: str
    queue: str
    namespace: str
    owner: str
    number: int
    """1 for the job's first run."""
    node: str
    pod_name: str
    """The name of the remains, the same for every run of the job."""
    pod_spec: PodSpec
    """Already grown."""
    memory_bytes: int = 0
    """The limit of the whole run, 0 for none."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """End this run: its job was cancelled, or the run is no longer this executor's."""

    run_id: str
    grace_seconds: float | None = None
    """None: what the pod spec says."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkRequest:
    """An agent asks what there is to do."""

    executor: str
    runs: Collection[str]
    """Every run the agent knows of: running, ending, or ended with a report still to be accepted."""
    stopping: Collection[str] = ()
    """Those it need not be told to stop: it stops them already for the same reason, or they have ended. A stop of any
    other run is an answer at once, so an agent that does not say this is told the same as often as it asks.
    """
    wait_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What there is to do. The same request again brings the same leases: a lost answer loses nothing."""

    leases: Sequence[Lease] = ()
    stop: Sequence[Stop] = ()
    forget: Sequence[str] = ()
    """Runs among those asked about that the scheduler has finished with."""
    missed: Sequence[str] = ()
    """Runs that are at work as far as the scheduler knows, and were not asked about."""
    ask_again_seconds: float = 0.0
    """Above 0: there was no room to wait for work; ask again after so many seconds."""

    @property
    def is_empty(self) -> bool:
        """Nothing to do."""
        return not (self.leases or self.stop or self.forget or self.missed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """The beginning and the end of what a run wrote; what lay between is only counted."""

    head: bytes = b""
    tail: bytes = b""
    dropped_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ExitRecord:
    """How a run ended, as its executor recorded it."""

    exit_code: int | None = None
    """Of the container that decides: the one killed for memory, else the first to fail, else 0."""
    signal: int | None = None
    killed_by: KilledBy = KilledBy.NOTHING
    memory_peak_bytes: int | None = None
    enforced_by: EnforcedBy = EnforcedBy.NOBODY
    warnings: Sequence[str] = ()
    output: Output | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What an executor sees of one run. Seeing the same twice must change nothing."""

    run_id: str
    phase: RunPhase
    signals: Signals = field(default_factory=Signals)
    """The raw facts of an end, in the shape of a pod's."""
    exit: ExitRecord | None = None
    failure: Failure | None = None
    """A built-in failure the executor names itself (`internal`); categories are not asked then."""
    trouble: Trouble | None = None
    """The run is no good in whatever phase it is; `signals.message` says more. This ends it for the scheduler."""
    age_seconds: float = 0.0
    """Since it happened."""

    @property
    def is_end(self) -> bool:
        """The run is over, or is to be."""
        return self.trouble is not None or self.phase.is_end


@dataclass(frozen=True, kw_only=True, slots=True)
class Remains:
    """What is left of a run: a pod, or a folder and a control group."""

    present: bool
    deleting_seconds: float | None = None
    """Since their deletion was accepted; None when it was not, or leaves no mark."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What an agent tells the scheduler about a run. Telling the same again changes nothing."""

    run_id: str
    state: ReportState
    age_seconds: float = 0.0
    """Since it happened."""
    node: str = ""
    pod_name: str = ""
    exit_code: int | None = None
    signal: int | None = None
    category: str = ""
    subcategory: str = ""
    hint: str = ""
    message: str = ""
    """With the hint appended."""
    reason: str = ""
    """OOM, Evicted, DeadlineExceeded or AppError; empty unless the run failed."""
    containers: Sequence[ContainerEnd] = ()
    attempted: bool = True
    """Only of a returned lease: whether the job was tried."""
    memory_peak_bytes: int | None = None
    killed_by: KilledBy = KilledBy.NOTHING
    enforced_by: EnforcedBy = EnforcedBy.NOBODY
    warnings: Sequence[str] = ()
    output: Output | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportOutcome:
    """What became of one report; `why` is a sentence when it was refused."""

    run_id: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundRun:
    """A run of this executor whose remains are there, whoever started it."""

    run_id: str
    node: str
    pod_name: str


class LeaseRefusedError(Exception):
    """An executor cannot start a lease; its text says why. The lease goes back, attempted."""


class NameTakenError(LeaseRefusedError):
    """Remains of an earlier run hold the name. The lease goes back and the remains are removed by name."""


class LeaseForbiddenError(Exception):
    """The place where runs happen refuses this one for good. The run fails, without a category."""


class LeaseImpossibleError(Exception):
    """A lease that can never be turned into a run here. The run fails; trying again would not help."""


class Executor(Protocol):
    """What an agent needs of the place where runs happen. Called from one thread, except `wake`."""

    @property
    def honours(self) -> Sequence[str]:
        """Paths of the pod spec that it acts on."""

    def nodes(self) -> Sequence[NodeDescription]:
        """Its nodes as they are now."""

    def adopt(self, *, run_id: str, pod_name: str) -> bool:
        """Take up a run of an agent before this one. False: nothing of it was ever started."""

    def start(self, lease: Lease) -> None:
        """Start a run, or raise `LeaseRefusedError`, `LeaseForbiddenError` or `LeaseImpossibleError`."""

    def observe(self, *, timeout: float) -> Sequence[Observation]:
        """News of started and adopted runs; waits for some until `wake` or for so many seconds."""

    def wake(self) -> None:
        """Make `observe` return now. Safe from any thread."""

    def stop(self, run_id: str, *, grace_seconds: float | None) -> None:
        """Ask a run to end: politely, then by force. Asking again can only shorten the grace."""

    def remove(self, pod_name: str) -> None:
        """Have the remains of that name removed; they may take a while to go."""

    def remains(self, pod_name: str) -> Remains:
        """Whether anything of that name is left."""

    def close(self) -> None:
        """Let go of everything; runs go on."""


EVERYWHERE_HONOURED = (
    "spec.restartPolicy",
    "spec.terminationGracePeriodSeconds",
    "spec.activeDeadlineSeconds",
    *(
        f"spec.{kind}[].{name}"
        for kind in ("containers", "initContainers")
        for name in (
            "name",
            "image",
            "command",
            "args",
            "workingDir",
            "env[].name",
            "env[].value",
            "resources",
        )
    ),
)
"""What every executor acts on, or it is none."""


def unhonoured_fields(pod_spec: PodSpec, honours: Collection[str], *, root: str = "spec") -> tuple[str, ...]:
    """Paths of the fields a job sets that `honours` does not name, with indexes: `spec.containers[0].tty`.

    A path that is named covers all below it; `[]` stands for any element. Empty values count as absent.
    """
    return tuple(_unhonoured(pod_spec, honours, shown=root, path=root))


def needed_fields(pod_spec: PodSpec, besides: Collection[str] = ()) -> tuple[str, ...]:
    """Paths of the fields a job sets that not every executor acts on, with `[]` for any element.

    `besides` are paths that need no executor.
    """
    known = (*EVERYWHERE_HONOURED, *besides)
    return tuple(sorted(path for path in set(_set_fields(pod_spec, "spec")) if not _is_covered(path, known)))


def first_unhonoured(fields: Iterable[str], honours: Collection[str]) -> str:
    """The first of such paths, by name, that `honours` does not name; empty where there is none."""
    return next((path for path in sorted(fields) if not _is_covered(path, honours)), "")


LONGEST_PATH = 1_024
"""Characters of the longest path an executor can name; what lies deeper it acts on or not as a whole."""


def _set_fields(value: Any, path: str) -> Iterator[str]:
    if len(path) > LONGEST_PATH:
        yield path[: LONGEST_PATH + 1]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _set_fields(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _set_fields(item, f"{path}[]")
    elif value is not None and value != "":
        yield path


def _is_covered(path: str, honours: Collection[str]) -> bool:
    return any(path == entry or path.startswith((f"{entry}.", f"{entry}[")) for entry in honours)


def _unhonoured(value: Any, honours: Collection[str], *, shown: str, path: str) -> list[str]:
    if path in honours or value is None or value in ({}, [], ""):
        return []
    if isinstance(value, Mapping):
        below = [(item, f"{shown}.{key}", f"{path}.{key}") for key, item in value.items()]
    elif isinstance(value, list | tuple):
        below = [(item, f"{shown}[{index}]", f"{path}[]") for index, item in enumerate(value)]
    else:
        return [shown]
    if not any(entry.startswith((f"{path}.", f"{path}[")) for entry in honours):
        return [shown]
    return [found for item, name, at in below for found in _unhonoured(item, honours, shown=name, path=at)]
