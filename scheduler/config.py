"""The scheduler's configuration: one YAML file with Armada's key names, read into typed values.

Environment variables override single keys: `TACK__SCHEDULING__RETRYPOLICY__ENABLED=true` is
`scheduling.retryPolicy.enabled`. The sections `application`, `kubernetes` and `local` of the same file
belong to the agent and are not looked at here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.keys import (
    LONGEST_NAME,
    ConfigurationInvalid,
    Keys,
    count,
    flag,
    name_of_at_most,
    number,
    seconds_of,
    text,
    texts,
)
from scheduler.priorityclasses import DEFAULT_CLASS, DEFAULT_CLASSES, Classes, read_classes

__all__ = [
    "Configuration",
    "ConfigurationInvalid",
    "RetryPolicyConfiguration",
    "configuration_from",
    "load_configuration",
    "node_id_label_of",
    "seconds_of",
]

DAY = 24 * 3_600.0
AGENT_SECTIONS = ("application", "kubernetes", "local", "task")
RESOURCE_TYPES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu")
FAIR_SHARE_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicyConfiguration:
    """`scheduling.retryPolicy`"""

    enabled: bool = False
    """Whether retry policies decide at all. Off is the legacy path: a failed run fails its job."""
    global_max_retries: int = 5
    """The most retries any policy may grant a job. 0 grants none: the kill switch."""
    default_policy_name: str = ""
    """The policy of queues that have none attached. Empty: such queues take the legacy path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """Everything the scheduler can be told."""

    retry_policy: RetryPolicyConfiguration = field(default_factory=RetryPolicyConfiguration)
    max_retries: int = 3
    """`scheduling.maxRetries`: how often an attempted lease return is tried again; 0 never."""
    node_id_label: str = "kubernetes.io/hostname"
    """`scheduling.nodeIdLabel`: the node label that `avoidSameNode` goes by."""
    indexed_node_labels: tuple[str, ...] = ()
    """`scheduling.indexedNodeLabels`: must hold `nodeIdLabel` when retry policies are on."""
    maximum_scheduling_rate: float = 100.0
    """`scheduling.maximumSchedulingRate`: leases a second in each pool; 0 switches the limit off."""
    maximum_scheduling_burst: int = 1_000
    """`scheduling.maximumSchedulingBurst`: leases at once after a quiet time; with a rate, 0 starts none, and warns."""
    maximum_per_queue_scheduling_rate: float = 50.0
    """`scheduling.maximumPerQueueSchedulingRate`: leases a second for one queue; 0 switches the limit off."""
    maximum_per_queue_scheduling_burst: int = 1_000
    """`scheduling.maximumPerQueueSchedulingBurst`: the same for one queue."""
    max_queue_lookback: int = 100_000
    """`scheduling.maxQueueLookback`: how many queued jobs of a queue one round looks at; 0 looks at none, and warns."""
    priority_classes: Classes = field(default_factory=lambda: DEFAULT_CLASSES)
    """`scheduling.priorityClasses`"""
    default_priority_class_name: str = DEFAULT_CLASS
    """`scheduling.defaultPriorityClassName`: the class of jobs that name none."""
    fair_share_resources: tuple[str, ...] = FAIR_SHARE_RESOURCES
    """`scheduling.dominantResourceFairnessResourcesToConsider`: a queue's share is its largest of these."""
    protected_fraction_of_fair_share: float = 1.0
    """`scheduling.protectedFractionOfFairShare`: a queue that holds no more than this part of its share loses no run."""
    supported_resource_types: tuple[str, ...] = RESOURCE_TYPES
    """`scheduling.supportedResourceTypes`: what jobs may ask for and nodes are counted by."""
    requeue_preempted: bool = False
    """`scheduling.requeuePreempted`: whether a preempted job waits for another run instead of ending; uncounted."""
    executor_timeout_seconds: float = 3_600.0
    """`executorTimeout`: an executor silent for so long has lost its leases."""
    metrics_reset_seconds: float = 43_200.0
    """`metrics.jobStateMetricsResetInterval`: totals of decisions and failures begin anew so often; 0 never."""
    job_retention_seconds: float = 42 * DAY
    """`retention.jobs`: ended jobs, with all there is about them, are kept so long; 0 keeps them for good."""
    output_retention_seconds: float = 14 * DAY
    """`retention.output`: what runs wrote is kept so long after their end; 0 as long as their jobs."""
    client_id_retention_seconds: float = 7 * DAY
    """`retention.clientIds`: a client id names its job for so long after its end; 0 as long as there is the job."""

    @property
    def attempt_limit(self) -> int:
        """How many attempted runs a job may have before a returned lease ends it."""
        return self.max_retries + 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is legal and surprising; told at the start and on every page."""
        return (*self._kill_switch(), *self._starts_nothing())

    def class_of(self, name: str) -> str:
        """The priority class of a job that names this one, or none; empty where there is no such class."""
        wanted = name or self.default_priority_class_name
        return wanted if wanted in self.priority_classes else ""

    def _kill_switch(self) -> Iterator[str]:
        if self.retry_policy.enabled and self.retry_policy.global_max_retries == 0:
            yield (
                "Retries are switched off: scheduling.retryPolicy.globalMaxRetries is 0. "
                "Set it to 1 or more to let policies retry again."
            )

    def _starts_nothing(self) -> Iterator[str]:
        at_once = {
            "maximumSchedulingBurst": self.maximum_scheduling_burst or not self.maximum_scheduling_rate,
            "maximumPerQueueSchedulingBurst": (
                self.maximum_per_queue_scheduling_burst or not self.maximum_per_queue_scheduling_rate
            ),
            "maxQueueLookback": self.max_queue_lookback,
        }
        for key, lets_some_start in at_once.items():
            if not lets_some_start:
                yield f"No job starts: scheduling.{key} is 0. Set it to 1 or more to let jobs start again."


def load_configuration(path: Path | None, environment: Mapping[str, str]) -> Configuration:
    """Read the file, lay the environment's keys over it, check the whole.

    Without a file the defaults hold. Raises ConfigurationInvalid with every problem at once.
    """
    return _configuration(Keys.of_file(path, environment))


def configuration_from(document: Mapping[str, Any]) -> Configuration:
    """The configuration of a document's object. Raises ConfigurationInvalid with every problem at once."""
    return _configuration(Keys(document))


def node_id_label_of(scheduling: Keys) -> str:
    """The label that tells nodes apart, read alike by the server and by agents."""
    return scheduling.take("nodeIdLabel", name_of_at_most(LONGEST_NAME), Configuration().node_id_label)


def _configuration(keys: Keys) -> Configuration:
    scheduling = keys.section("scheduling")
    retry_policy = scheduling.section("retryPolicy")
    retention = keys.section("retention")
    found = Configuration(
        retry_policy=RetryPolicyConfiguration(
            enabled=retry_policy.take("enabled", flag, default=False),
            global_max_retries=retry_policy.take("globalMaxRetries", count, 5),
            default_policy_name=retry_policy.take("defaultPolicyName", text, ""),
        ),
        max_retries=scheduling.take("maxRetries", count, 3),
        node_id_label=node_id_label_of(scheduling),
        indexed_node_labels=scheduling.take("indexedNodeLabels", texts, ()),
        maximum_scheduling_rate=scheduling.take("maximumSchedulingRate", number, 100.0),
        maximum_scheduling_burst=scheduling.take("maximumSchedulingBurst", count, 1_000),
        maximum_per_queue_scheduling_rate=scheduling.take("maximumPerQueueSchedulingRate", number, 50.0),
        maximum_per_queue_scheduling_burst=scheduling.take("maximumPerQueueSchedulingBurst", count, 1_000),
        max_queue_lookback=scheduling.take("maxQueueLookback", count, 100_000),
        priority_classes=read_classes(scheduling),
        default_priority_class_name=scheduling.take("defaultPriorityClassName", text, DEFAULT_CLASS),
        fair_share_resources=scheduling.take(
            "dominantResourceFairnessResourcesToConsider", texts, FAIR_SHARE_RESOURCES
        ),
        protected_fraction_of_fair_share=scheduling.take("protectedFractionOfFairShare", number, 1.0),
        supported_resource_types=scheduling.take("supportedResourceTypes", _resource_types, RESOURCE_TYPES),
        requeue_preempted=scheduling.take("requeuePreempted", flag, default=False),
        executor_timeout_seconds=keys.take("executorTimeout", seconds_of, 3_600.0),
        metrics_reset_seconds=keys.section("metrics").take(
            "jobStateMetricsResetInterval", seconds_of, 43_200.0
        ),
        job_retention_seconds=retention.take("jobs", seconds_of, 42 * DAY),
        output_retention_seconds=retention.take("output", seconds_of, 14 * DAY),
        client_id_retention_seconds=retention.take("clientIds", seconds_of, 7 * DAY),
    )
    keys.leave(AGENT_SECTIONS)
    problems = [*keys.problems, *keys.unknown(), *_contradictions(found)]
    if problems:
        raise ConfigurationInvalid(problems)
    return found


def _contradictions(found: Configuration) -> list[str]:
    problems = []
    if found.retry_policy.enabled and found.node_id_label not in found.indexed_node_labels:
        problems.append(
            f"scheduling.retryPolicy.enabled is true, but scheduling.indexedNodeLabels lacks "
            f"'{found.node_id_label}' (scheduling.nodeIdLabel). Add it to the list, or switch retry policies off."
        )
    problems += _contradictions_of_scheduling(found)
    if found.executor_timeout_seconds <= 0:
        problems.append("executorTimeout is 0: every lease would expire at once. Set it to 60s or more.")
    return problems


def _contradictions_of_scheduling(found: Configuration) -> Iterator[str]:
    if not found.class_of(""):
        yield (
            f"scheduling.defaultPriorityClassName is '{found.default_priority_class_name}', which is not one of "
            f"scheduling.priorityClasses ({', '.join(found.priority_classes)}). Name one of them."
        )
    if missing := [name for name in ("cpu", "memory") if name not in found.supported_resource_types]:
        yield f"scheduling.supportedResourceTypes lacks {' and '.join(missing)}. Add {'it' if len(missing) == 1 else 'them'}."
    if not found.fair_share_resources:
        yield (
            "scheduling.dominantResourceFairnessResourcesToConsider is empty: no queue would have a share. "
            "Name a resource, such as cpu."
        )
    for name in found.fair_share_resources:
        if name not in found.supported_resource_types:
            yield (
                f"scheduling.dominantResourceFairnessResourcesToConsider names {name}, which is not one of "
                "scheduling.supportedResourceTypes. Add it there, or leave it out here."
            )


def _resource_types(value: Any) -> tuple[str, ...]:
    """Names of resources, alone or as `{name: …}`. Amounts are exact, so a resolution would mean nothing."""
    if not isinstance(value, list):
        raise ValueError("takes a list of resources, such as [{name: cpu}, {name: memory}]")
    plain = [each["name"] if isinstance(each, dict) and set(each) == {"name"} else each for each in value]
    if any(isinstance(each, dict) for each in plain):
        raise ValueError("takes resources that each have a name and nothing else")
    return texts(plain)
