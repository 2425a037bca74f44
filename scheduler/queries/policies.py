"""Read retry policies: their versions, the queues they are attached to, and what executors say to them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count, Q

from policies.documents import PolicyDraft
from policies.failures import Disposition
from policies.policy import Policy
from policies.problems import DocumentInvalid, Problem
from scheduler.config import Configuration
from scheduler.deployment import DeploymentCheck, HeardExecutor, check_deployment
from scheduler.errors import NotFound
from scheduler.fields import is_line
from scheduler.models import Executor, QueuePolicy, RetryPolicy, RetryPolicyVersion
from scheduler.queries.fleet import heard_of


@dataclass(frozen=True, kw_only=True)
class PolicyVersion:
    """A published document of a policy, which may be unreadable to this Tack."""

    row: RetryPolicyVersion

    @property
    def name(self) -> str:
        return self.row.policy_name

    @property
    def version(self) -> int:
        return self.row.version

    @property
    def document(self) -> dict[str, Any]:
        """The policy as a document object."""
        return dict(self.row.document)

    @cached_property
    def read(self) -> tuple[Policy | None, tuple[Problem, ...]]:
        """The policy, or why it cannot be read."""
        try:
            return self.row.to_policy(), ()
        except DocumentInvalid as error:
            return None, error.problems

    @property
    def policy(self) -> Policy | None:
        """The policy; None when it cannot be read, and then its queues take the legacy path."""
        return self.read[0]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why it cannot be read."""
        return self.read[1]

    @property
    def rule_count(self) -> int:
        """How many rules it has; 0 when it cannot be read."""
        return len(self.policy.rules) if self.policy else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyRow:
    """A policy as lists show it: its current version and the queues it is attached to."""

    policy: RetryPolicy
    current: PolicyVersion
    queues: tuple[str, ...]
    """By name."""
    decides_for: tuple[str, ...]
    """Those of the queues in whose list it comes first."""

    @property
    def name(self) -> str:
        return self.policy.name


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyDetail:
    """A policy with the version that is shown and all its versions."""

    row: PolicyRow | None
    """None when the policy was deleted: its versions are kept."""
    shown: PolicyVersion
    versions: tuple[RetryPolicyVersion, ...]
    """Newest first, without texts and documents."""

    @property
    def name(self) -> str:
        return self.shown.name

    @property
    def is_current(self) -> bool:
        """The version that is shown is the one that decides."""
        return self.row is not None and self.row.policy.version == self.shown.version


def policy_rows() -> list[PolicyRow]:
    """Every policy by name, in three queries."""
    return _rows(list(RetryPolicy.objects.order_by("name")))


def policy_detail(name: str, version: int | None = None) -> PolicyDetail:
    """A policy at one version, the current one unless told otherwise. Raises NotFound.

    A version of a deleted policy is found by its number.
    """
    policy = RetryPolicy.objects.filter(name=name).first() if is_line(name) else None
    if policy is None and version is None:
        raise NotFound("retry policy", name)
    row = _rows([policy])[0] if policy else None
    shown = (
        row.current if row and version in (None, row.policy.version) else policy_version(name, version or 0)
    )
    versions = RetryPolicyVersion.objects.filter(policy_name=name).defer("text", "document")
    return PolicyDetail(row=row, shown=shown, versions=tuple(versions.order_by("-version")))


def policy_version(name: str, version: int) -> PolicyVersion:
    """One version, also of a deleted policy. Raises NotFound."""
    found = RetryPolicyVersion.objects.filter(policy_name=name, version=version) if is_line(name) else None
    row = found.first() if found is not None and 0 < version < 2**31 else None
    if row is None:
        raise NotFound("retry policy", f"{name} (version {version})" if version else name)
    return PolicyVersion(row=row)


def policy_versions(name: str) -> list[PolicyVersion]:
    """Every version, newest first, also of a deleted policy. Raises NotFound when there never was one."""
    rows = RetryPolicyVersion.objects.filter(policy_name=name) if is_line(name) else ()
    versions = [PolicyVersion(row=row) for row in rows]
    if not versions:
        raise NotFound("retry policy", name)
    return sorted(versions, key=lambda each: each.version, reverse=True)


def current_versions(policies: Collection[RetryPolicy]) -> dict[str, RetryPolicyVersion]:
    """Policy → the row of its current version, in one query."""
    rows = version_rows((policy.name, policy.version) for policy in policies)
    return {row.policy_name: row for row in rows}


def version_rows(wanted: Iterable[tuple[str, int]]) -> list[RetryPolicyVersion]:
    """The rows of versions by name and number, in one query; what does not exist is left out."""
    pairs = list(wanted)
    rows = RetryPolicyVersion.objects.raw(
        "SELECT v.* FROM scheduler_retrypolicyversion v "
        "JOIN unnest(%s::text[], %s::int[]) AS w(name, version) ON v.policy_name = w.name AND v.version = w.version",
        [[name for name, _ in pairs], [version for _, version in pairs]],
    )
    return list(rows)


def deployment_check(policy: Policy, *, config: Configuration) -> DeploymentCheck:
    """What the executors heard of lately say to a policy, in one query."""
    return check_deployment(policy, heard_executors(config=config), node_id_label=config.node_id_label)


def deployment_check_of_draft(draft: PolicyDraft, *, config: Configuration) -> DeploymentCheck:
    """What they say to the rules of a document with problems, where nothing is wrong with the place itself already."""
    found = deployment_check(draft.as_far_as_read(), config=config)
    wrong = {problem.path for problem in draft.problems}

    def are_new(problems: Iterable[Problem]) -> tuple[Problem, ...]:
        return tuple(
            each for each in problems if each.path.startswith("rules[") and not wrong & _above(each.path)
        )

    return DeploymentCheck(problems=are_new(found.problems), warnings=are_new(found.warnings))


def _above(path: str) -> set[str]:
    """The path and all that hold it: `rules[0].mutate`, `rules[0]`, `rules`."""
    return {path[:end] for end in range(len(path) + 1) if end == len(path) or path[end] in ".["}


def deployment_checks(
    versions: Iterable[PolicyVersion], *, config: Configuration
) -> dict[str, DeploymentCheck]:
    """Policy → what the executors say to it, of those that can be read; the queries of one."""
    policies = [version.policy for version in versions if version.policy]
    executors = heard_executors(config=config) if policies else []
    return {
        policy.name: check_deployment(policy, executors, node_id_label=config.node_id_label)
        for policy in policies
    }


def heard_executors(*, config: Configuration) -> list[HeardExecutor]:
    """What the executors heard of lately say of themselves, by name."""
    lacks_label = ~Q(nodes__labels__has_key=config.node_id_label) & Q(nodes__isnull=False)
    heard = Executor.objects.filter(heard_of(config)).order_by("name")
    return [
        HeardExecutor(
            name=executor.name,
            categories={each["name"]: Disposition(each["disposition"]) for each in executor.categories},
            tracked_node_labels=frozenset(executor.tracked_node_labels),
            unlabelled_nodes=executor.unlabelled,
        )
        for executor in heard.annotate(unlabelled=Count("nodes", filter=lacks_label))
    ]


def _rows(policies: list[RetryPolicy]) -> list[PolicyRow]:
    current = current_versions(policies)
    attached = _attachments([policy.name for policy in policies])
    return [
        PolicyRow(
            policy=policy,
            current=PolicyVersion(row=current[policy.name]),
            queues=tuple(attached.get(policy.name, {})),
            decides_for=tuple(queue for queue, first in attached.get(policy.name, {}).items() if first),
        )
        for policy in policies
    ]


def _attachments(names: Collection[str]) -> Mapping[str, Mapping[str, bool]]:
    """Policy → queue → whether it comes first there."""
    theirs = QueuePolicy.objects.filter(policy__in=names).values("queue")
    first: dict[str, str] = {}
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for each in QueuePolicy.objects.filter(queue__in=theirs).order_by("queue_id", "ordinal"):
        first.setdefault(each.queue_id, each.policy_id)
        found[each.policy_id][each.queue_id] = first[each.queue_id] == each.policy_id
    return found
