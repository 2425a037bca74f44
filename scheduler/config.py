"""The scheduler's configuration: one YAML file with Armada's key names, read into typed values.

Environment variables override single keys: `TACK__SCHEDULING__RETRYPOLICY__ENABLED=true` is
`scheduling.retryPolicy.enabled`. The sections `application`, `kubernetes` and `local` of the same file
belong to the agent and are not looked at here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policies.problems import DocumentInvalid
from policies.tree import MAX_BYTES, object_of_text
from scheduler.fields import problem_of_line

ENVIRONMENT_PREFIX = "TACK__"
LONGEST_SECONDS = 10 * 365 * 24 * 3600.0
LONGEST_NAME = 317
"""Characters of the name of a policy or of a node label."""
AGENT_SECTIONS = frozenset({"application", "kubernetes", "local", "task"})
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")


class ConfigurationInvalid(Exception):
    """The configuration contradicts itself or cannot be read. One sentence a problem, each with its fix."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


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
    """`scheduling.maximumSchedulingBurst`: leases at once after a quiet time; with a rate, 0 starts none."""
    maximum_per_queue_scheduling_rate: float = 50.0
    """`scheduling.maximumPerQueueSchedulingRate`: leases a second for one queue; 0 switches the limit off."""
    maximum_per_queue_scheduling_burst: int = 1_000
    """`scheduling.maximumPerQueueSchedulingBurst`: the same for one queue."""
    max_queue_lookback: int = 100_000
    """`scheduling.maxQueueLookback`: how many queued jobs of a queue one round looks at; 0 looks at none."""
    executor_timeout_seconds: float = 3_600.0
    """`executorTimeout`: an executor silent for so long has lost its leases."""

    @property
    def attempt_limit(self) -> int:
        """How many attempted runs a job may have before a returned lease ends it."""
        return self.max_retries + 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is legal and surprising; told at the start and on every page."""
        if self.retry_policy.enabled and self.retry_policy.global_max_retries == 0:
            return (
                "Retries are switched off: scheduling.retryPolicy.globalMaxRetries is 0. "
                "Set it to 1 or more to let policies retry again.",
            )
        return ()


def load_configuration(path: Path | None, environment: Mapping[str, str]) -> Configuration:
    """Read the file, lay the environment's keys over it, check the whole.

    Without a file the defaults hold. Raises ConfigurationInvalid with every problem at once.
    """
    document = read_document(path)
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX):
            _override(document, name.removeprefix(ENVIRONMENT_PREFIX).split("__"), text)
    return configuration_from(document)


def configuration_from(document: Mapping[str, Any]) -> Configuration:
    """The configuration of a document's object. Raises ConfigurationInvalid with every problem at once."""
    reader = _Reader(document)
    scheduling = reader.section("scheduling")
    retry_policy = scheduling.section("retryPolicy")
    found = Configuration(
        retry_policy=RetryPolicyConfiguration(
            enabled=retry_policy.take("enabled", _flag, default=False),
            global_max_retries=retry_policy.take("globalMaxRetries", _count, 5),
            default_policy_name=retry_policy.take("defaultPolicyName", _text, ""),
        ),
        max_retries=scheduling.take("maxRetries", _count, 3),
        node_id_label=scheduling.take("nodeIdLabel", _text, "kubernetes.io/hostname"),
        indexed_node_labels=scheduling.take("indexedNodeLabels", _texts, ()),
        maximum_scheduling_rate=scheduling.take("maximumSchedulingRate", _number, 100.0),
        maximum_scheduling_burst=scheduling.take("maximumSchedulingBurst", _count, 1_000),
        maximum_per_queue_scheduling_rate=scheduling.take("maximumPerQueueSchedulingRate", _number, 50.0),
        maximum_per_queue_scheduling_burst=scheduling.take("maximumPerQueueSchedulingBurst", _count, 1_000),
        max_queue_lookback=scheduling.take("maxQueueLookback", _count, 100_000),
        executor_timeout_seconds=reader.take("executorTimeout", seconds_of, 3_600.0),
    )
    reader.forget(AGENT_SECTIONS)
    problems = [*reader.problems, *reader.unknown(), *_contradictions(found)]
    if problems:
        raise ConfigurationInvalid(problems)
    return found


def seconds_of(value: Any) -> float:
    """Seconds of a duration such as `1h30m`, `45s` or `250ms`. Raises ValueError."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise ValueError("takes a duration such as 1h, 90s or 1m30s")
    hours, minutes, whole, thousandths = (float(part or 0) for part in match.groups())
    seconds = hours * 3600 + minutes * 60 + whole + thousandths / 1000
    if seconds > LONGEST_SECONDS:
        raise ValueError("takes a duration of at most ten years")
    return seconds


def _contradictions(found: Configuration) -> list[str]:
    problems = []
    if found.retry_policy.enabled and found.node_id_label not in found.indexed_node_labels:
        problems.append(
            f"scheduling.retryPolicy.enabled is true, but scheduling.indexedNodeLabels lacks "
            f"'{found.node_id_label}' (scheduling.nodeIdLabel). Add it to the list, or switch retry policies off."
        )
    if not found.node_id_label:
        problems.append("scheduling.nodeIdLabel is empty. Name the node label that tells nodes apart.")
    if found.executor_timeout_seconds <= 0:
        problems.append("executorTimeout is 0: every lease would expire at once. Set it to 60s or more.")
    return problems


def read_document(path: Path | None) -> dict[str, Any]:
    """The keys and values of a configuration file, read as strictly as policies are; empty without a file.

    Raises ConfigurationInvalid, also for aliases, tags and keys that are there twice.
    """
    if path is None:
        return {}
    try:
        document = object_of_text(_start_of(path).decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationInvalid([f"The configuration file {path} cannot be read: {error}"]) from error
    except DocumentInvalid as error:
        told = [f"The configuration file {path} cannot be read: {problem}" for problem in error.problems]
        raise ConfigurationInvalid(told) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationInvalid([f"The configuration file {path} must hold keys and values."])
    return document


def _start_of(path: Path) -> bytes:
    """The whole file, unless it is far too large for one."""
    with path.open("rb") as file:
        start = file.read(MAX_BYTES + 1)
    if len(start) > MAX_BYTES:
        raise ConfigurationInvalid([f"The configuration file {path} is larger than {MAX_BYTES // 1024} KiB."])
    return start


def value_of(variable: str, text: str) -> Any:
    """What an environment variable says, as YAML. Raises ConfigurationInvalid, naming it."""
    try:
        return object_of_text(text)
    except DocumentInvalid as error:
        raise ConfigurationInvalid(
            [f"{variable} cannot be read as YAML: {shown(text)}. Quote it."]
        ) from error


def shown(value: object) -> str:
    """A value in a sentence, cut short, whatever it is."""
    try:
        return f"{str(value)[:80]!r}"
    except ValueError:  # thousands of digits
        return "a huge number"


def _override(document: dict[str, Any], path: list[str], text: str) -> None:
    variable = f"{ENVIRONMENT_PREFIX}{'__'.join(path)}"
    *sections, last = path
    for name in sections:
        key = _spelled(document, name)
        if document.get(key) is None:
            document[key] = {}
        document = document[key]
        if not isinstance(document, dict):
            raise ConfigurationInvalid([f"{variable} does not name a single key."])
    document[_spelled(document, last)] = value_of(variable, text)


def _spelled(document: Mapping[str, Any], name: str) -> str:
    return next((key for key in document if str(key).lower() == name.lower()), name)


class _Reader:
    """One section of the document: takes keys, gathers problems, knows what nobody took."""

    def __init__(self, document: Any, path: str = "", problems: list[str] | None = None) -> None:
        self.problems: list[str] = problems if problems is not None else []
        self._path = path
        self._sections: list[_Reader] = []
        if document is not None and not isinstance(document, Mapping):
            self.problems.append(f"{path.rstrip('.')} must hold keys and values.")
        self._left = dict(document) if isinstance(document, Mapping) else {}

    def section(self, name: str) -> "_Reader":
        found = _Reader(
            self._left.pop(_spelled(self._left, name), None), f"{self._path}{name}.", self.problems
        )
        self._sections.append(found)
        return found

    def take[T](self, name: str, read: Callable[[Any], T], default: T) -> T:
        value = self._left.pop(_spelled(self._left, name), None)
        if value is None:
            return default
        try:
            return read(value)
        except ValueError as error:
            self.problems.append(f"{self._path}{name} {error}; it is {shown(value)}.")
            return default

    def forget(self, names: frozenset[str]) -> None:
        for name in names:
            self._left.pop(_spelled(self._left, name), None)

    def unknown(self) -> list[str]:
        mine = [
            f"{self._path}{str(key)[:80]} is not a key Tack knows. Remove it, or check its spelling."
            for key in self._left
        ]
        return mine + [problem for section in self._sections for problem in section.unknown()]


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("takes true or false")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**32:
        raise ValueError("takes a whole number from 0 to 4294967295")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("takes a number from 0 up")
    return float(value)


def _text(value: Any) -> str:
    if problem_of_line(value, most=LONGEST_NAME):
        raise ValueError(f"takes a line of text of at most {LONGEST_NAME} characters")
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or any(problem_of_line(item, most=LONGEST_NAME) for item in value):
        raise ValueError(f"takes a list of texts, each a line of at most {LONGEST_NAME} characters")
    return tuple(value)
