"""What the agent reads of the configuration file: categories, tracked labels, waits, the local nodes."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from policies.category_documents import parse_categories
from policies.failed_checks import FailedChecks, parse_failed_checks
from policies.failures import Categories
from policies.problems import DocumentInvalid
from policies.quantity import MAX_QUANTITY, parse_bytes, parse_millicores
from scheduler.agent.lifecycle import Limits
from scheduler.config import (
    ENVIRONMENT_PREFIX,
    LONGEST_NAME,
    ConfigurationInvalid,
    read_document,
    seconds_of,
    shown,
    value_of,
)
from scheduler.fields import problem_of_line

LONGEST_POOL = 63
AGENT_KEYS: Mapping[str, frozenset[str]] = {
    "application": frozenset({"errorCategories", "pool"}),
    "kubernetes": frozenset(
        {"trackedNodeLabels", "stuckTerminatingPodExpiry", "failedPodExpiry", "failedPodChecks"}
    ),
    "task": frozenset({"jobLeaseRenewalInterval"}),
    "local": frozenset({"nodes", "cpu", "memory"}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentConfiguration:
    """Everything an agent can be told by the file."""

    categories: Categories = field(default_factory=Categories)
    """`application.errorCategories`"""
    failed_checks: FailedChecks = field(default_factory=FailedChecks)
    """`kubernetes.failedPodChecks`: ends after which the lease is given back; they go before the categories."""
    pool: str = "default"
    """`application.pool`: the pool its nodes belong to."""
    tracked_node_labels: tuple[str, ...] = ()
    """`kubernetes.trackedNodeLabels`, and the label that tells nodes apart."""
    node_id_label: str = "kubernetes.io/hostname"
    """`scheduling.nodeIdLabel`"""
    limits: Limits = field(default_factory=Limits)
    """`kubernetes.stuckTerminatingPodExpiry` and `kubernetes.failedPodExpiry`"""
    heartbeat_seconds: float = 5.0
    """`task.jobLeaseRenewalInterval`: how often it says that it is there."""
    local_nodes: int = 2
    """`local.nodes`: how many slices of this machine to declare."""
    local_cpu_millicores: int = 0
    """`local.cpu` of each node; by default the machine's cores shared out."""
    local_memory_bytes: int = 0
    """`local.memory` of each node; by default the machine's memory shared out."""


def load_agent_configuration(path: Path | None, environment: Mapping[str, str]) -> AgentConfiguration:
    """Read the agent's sections. Without a file the defaults hold. Raises ConfigurationInvalid with every problem."""
    return agent_configuration_from(_overridden(read_document(path), environment))


def agent_configuration_from(document: Mapping[str, Any]) -> AgentConfiguration:
    """The agent's configuration of a document's object. Raises ConfigurationInvalid with every problem at once."""
    reader = _Reader(document)
    defaults = AgentConfiguration()
    nodes = reader.whole("local", "nodes", defaults.local_nodes)
    node_id_label = reader.text("scheduling", "nodeIdLabel", defaults.node_id_label)
    tracked = reader.texts("kubernetes", "trackedNodeLabels")
    found = AgentConfiguration(
        categories=reader.parsed("application", "errorCategories", parse_categories, Categories()),
        failed_checks=reader.parsed("kubernetes", "failedPodChecks", parse_failed_checks, FailedChecks()),
        pool=reader.text("application", "pool", defaults.pool, most=LONGEST_POOL),
        tracked_node_labels=tuple(dict.fromkeys([*tracked, node_id_label])),
        node_id_label=node_id_label,
        limits=Limits(
            stuck_terminating_seconds=reader.duration(
                "kubernetes", "stuckTerminatingPodExpiry", defaults.limits.stuck_terminating_seconds
            ),
            retain_seconds=reader.duration("kubernetes", "failedPodExpiry", defaults.limits.retain_seconds),
        ),
        heartbeat_seconds=reader.duration("task", "jobLeaseRenewalInterval", defaults.heartbeat_seconds),
        local_nodes=nodes,
        local_cpu_millicores=reader.cpu("local", "cpu", _machine_millicores() // max(nodes, 1)),
        local_memory_bytes=reader.memory("local", "memory", _machine_memory_bytes() // max(nodes, 1)),
    )
    if found.heartbeat_seconds <= 0:
        reader.problems.append("task.jobLeaseRenewalInterval is 0. Set it to 1s or more.")
    problems = [*reader.problems, *reader.unknown()]
    if problems:
        raise ConfigurationInvalid(problems)
    return found


def _machine_millicores() -> int:
    return (os.cpu_count() or 1) * 1000


def _machine_memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _overridden(document: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Lay the environment's keys for the agent's sections over the document."""
    for name, text in sorted(environment.items()):
        section, *rest = name.removeprefix(ENVIRONMENT_PREFIX).split("__")
        if not name.startswith(ENVIRONMENT_PREFIX) or len(rest) != 1:
            continue
        for known in AGENT_KEYS:
            if known.lower() != section.lower():
                continue
            if document.get(known) is None:
                document[known] = {}
            if isinstance(document[known], dict):
                key = next((each for each in AGENT_KEYS[known] if each.lower() == rest[0].lower()), rest[0])
                document[known][key] = value_of(name, text)
    return document


class _Parse[Value](Protocol):
    def __call__(self, value: object, *, path: str) -> Value: ...


class _Reader:
    """Takes keys of sections and gathers problems."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self._sections: dict[str, Mapping[str, Any]] = {}
        for name in (*AGENT_KEYS, "scheduling"):
            section = document.get(name)
            if section is not None and not isinstance(section, Mapping):
                self.problems.append(f"{name} must hold keys and values.")
                section = None
            self._sections[name] = section or {}

    def parsed[Value](self, section: str, name: str, parse: "_Parse[Value]", default: Value) -> Value:
        try:
            return parse(self._sections[section].get(name), path=f"{section}.{name}")
        except DocumentInvalid as error:
            self.problems.extend(f"{problem.path}: {problem.message}" for problem in error.problems)
            return default

    def text(self, section: str, name: str, default: str, *, most: int = LONGEST_NAME) -> str:
        value = self._sections[section].get(name, default)
        if value and not problem_of_line(value, most=most):
            return str(value)
        self._problem(section, name, f"takes a line of text of at most {most} characters", value)
        return default

    def texts(self, section: str, name: str) -> tuple[str, ...]:
        value = self._sections[section].get(name) or []
        if isinstance(value, list) and not any(problem_of_line(each, most=LONGEST_NAME) for each in value):
            return tuple(value)
        self._problem(section, name, "takes a list of texts, each a line", value)
        return ()

    def whole(self, section: str, name: str, default: int) -> int:
        value = self._sections[section].get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1000:
            return value
        self._problem(section, name, "takes a whole number from 1 to 1000", value)
        return default

    def duration(self, section: str, name: str, default: float) -> float:
        value = self._sections[section].get(name)
        try:
            return default if value is None else seconds_of(value)
        except ValueError as error:
            self._problem(section, name, str(error), value)
            return default

    def cpu(self, section: str, name: str, default: int) -> int:
        return self._amount(section, name, default, parse_millicores)

    def memory(self, section: str, name: str, default: int) -> int:
        return self._amount(section, name, default, parse_bytes)

    def _amount(self, section: str, name: str, default: int, parse: Callable[[str], int]) -> int:
        value = self._sections[section].get(name)
        try:
            amount = default if value is None else parse(str(value))
        except ValueError as error:
            self._problem(section, name, str(error), value)
            return default
        if not 0 < amount <= MAX_QUANTITY:
            self._problem(section, name, "takes an amount above 0 that a machine could have", value)
        return amount

    def unknown(self) -> list[str]:
        return [
            f"{section}.{str(key)[:80]} is not a key Tack knows. Remove it, or check its spelling."
            for section, known in AGENT_KEYS.items()
            for key in self._sections[section]
            if key not in known
        ]

    def _problem(self, section: str, name: str, what: str, value: Any) -> None:
        self.problems.append(f"{section}.{name} {what}; it is {shown(value)}.")
