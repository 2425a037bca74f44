"""What the agent reads of the configuration file: categories, tracked labels, waits, the local nodes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policies.category_documents import parse_categories
from policies.failed_checks import FailedChecks, parse_failed_checks
from policies.failures import Categories
from policies.quantity import parse_bytes, parse_millicores
from scheduler.agent.lifecycle import Limits
from scheduler.agent.local_nodes import DEFAULT_NODES, read_nodes
from scheduler.config import node_id_label_of
from scheduler.executors.slices import Slice
from scheduler.keys import ConfigurationInvalid, Keys, amount, name_of_at_most, seconds_of, texts

LONGEST_POOL = 63


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
    local_nodes: tuple[Slice, ...] = DEFAULT_NODES
    """`local.nodes`: the slices of this machine to declare."""
    local_cpu_millicores: int = 0
    """`local.cpu` of each node that says nothing else; by default the machine's cores shared out."""
    local_memory_bytes: int = 0
    """`local.memory` of each node that says nothing else; by default the machine's memory shared out."""


def load_agent_configuration(path: Path | None, environment: Mapping[str, str]) -> AgentConfiguration:
    """Read the agent's sections, lay the environment's keys over them, check the whole.

    Without a file the defaults hold. Raises ConfigurationInvalid with every problem at once.
    """
    return _configuration(Keys.of_file(path, environment))


def agent_configuration_from(document: Mapping[str, Any]) -> AgentConfiguration:
    """The agent's configuration of a document's object. Raises ConfigurationInvalid with every problem at once."""
    return _configuration(Keys(document))


def _configuration(keys: Keys) -> AgentConfiguration:
    application, kubernetes = keys.section("application"), keys.section("kubernetes")
    task, local = keys.section("task"), keys.section("local")
    node_id_label = node_id_label_of(keys.section("scheduling", shared=True))
    tracked = kubernetes.take("trackedNodeLabels", texts, AgentConfiguration().tracked_node_labels)
    nodes = read_nodes(local)
    found = AgentConfiguration(
        categories=application.parse("errorCategories", parse_categories, Categories()),
        failed_checks=kubernetes.parse("failedPodChecks", parse_failed_checks, FailedChecks()),
        pool=application.take("pool", name_of_at_most(LONGEST_POOL), "default"),
        tracked_node_labels=tuple(dict.fromkeys([*tracked, node_id_label])),
        node_id_label=node_id_label,
        limits=_limits(kubernetes),
        heartbeat_seconds=task.take("jobLeaseRenewalInterval", seconds_of, 5.0),
        local_nodes=nodes,
        local_cpu_millicores=local.take("cpu", amount(parse_millicores), _machine_millicores() // len(nodes)),
        local_memory_bytes=local.take("memory", amount(parse_bytes), _machine_memory_bytes() // len(nodes)),
    )
    if found.heartbeat_seconds <= 0:
        keys.problems.append("task.jobLeaseRenewalInterval is 0. Set it to 1s or more.")
    problems = [*keys.problems, *keys.unknown_in_sections()]
    if problems:
        raise ConfigurationInvalid(problems)
    return found


def _limits(kubernetes: Keys) -> Limits:
    defaults = Limits()
    return Limits(
        stuck_terminating_seconds=kubernetes.take(
            "stuckTerminatingPodExpiry", seconds_of, defaults.stuck_terminating_seconds
        ),
        retain_seconds=kubernetes.take("failedPodExpiry", seconds_of, defaults.retain_seconds),
    )


def _machine_millicores() -> int:
    return (os.cpu_count() or 1) * 1000


def _machine_memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
