"""Retry policies as they travel: documents, versions, and what a check says."""

import dataclasses
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any

from lookout.api.errors import ProblemView, problem_view
from lookout.api.shapes import Shaped
from policies.policy import Action
from scheduler.config import Configuration
from scheduler.deployment import DeploymentCheck
from scheduler.queries.policies import PolicyDetail, PolicyRow, PolicyVersion, deployment_checks


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MemoryDocument:
    """How memory grows: exactly one of the two."""

    static: str = ""
    """Added at each retry: a quantity such as 512Mi."""
    factor: float = 0.0
    """What it is multiplied with at each retry: above 1, at most 100."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ResourcesDocument:
    """What a retry changes of the resources."""

    memory: MemoryDocument | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AffinityDocument:
    """What a retry changes of the choice of nodes."""

    avoid_same_node: bool = False
    """Away from every node the job failed on."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MutateDocument:
    """What a retry changes before the job runs again."""

    affinity: AffinityDocument | None = None
    resources: ResourcesDocument | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RuleDocument:
    """A rule: what to do about a category of failure."""

    action: Action
    on_category: str
    on_subcategory: str = ""
    mutate: MutateDocument | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicyDocument:
    """A retry policy, as in a file. The first rule that matches decides; values that mean nothing are left out."""

    name: str
    """Lower-case letters, digits and inner dashes, at most 63."""
    default_action: Action
    """What happens when no rule matches."""
    api_version: str = ""
    """armadaproject.io/v1beta1; may be left out over REST."""
    kind: str = ""
    """RetryPolicy; may be left out over REST."""
    retry_limit: int = 0
    """The most retries it grants a job; 0 grants none."""
    rules: tuple[RuleDocument, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PolicyView:
    """One version of a retry policy."""

    policy: Annotated[dict[str, Any], Shaped(RetryPolicyDocument)]
    version: int
    note: str
    author: str
    created_at: datetime
    queues: tuple[str, ...]
    """Queues the policy is attached to, by name."""
    problems: tuple[ProblemView, ...] = ()
    """Of the version in force: what the executors heard of cannot do of it. They may have changed since it was written."""
    warnings: tuple[ProblemView, ...] = ()
    """Of the version in force: what else its author should know of them."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PolicyList:
    """The current version of every policy, by name."""

    retry_policies: tuple[PolicyView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class VersionList:
    """Every version of a policy, newest first."""

    versions: tuple[PolicyView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PolicyCheck:
    """What is wrong with a document, and what its rules do."""

    problems: tuple[ProblemView, ...]
    """Why it would be refused; those that only executors raise can be passed with `force`."""
    warnings: tuple[ProblemView, ...]
    """What its author should know all the same."""
    rules: tuple[str, ...]
    """A sentence for each rule, in order; none when the document cannot be read."""


def version_view(
    version: PolicyVersion, queues: Collection[str], fleet: DeploymentCheck | None = None
) -> PolicyView:
    """One version as it travels, with what executors say to it where that was asked."""
    row, said = version.row, fleet or DeploymentCheck()
    return PolicyView(
        policy=version.document,
        version=version.version,
        note=row.note,
        author=row.author,
        created_at=row.created_at,
        queues=tuple(queues),
        problems=tuple(problem_view(problem) for problem in said.problems),
        warnings=tuple(problem_view(problem) for problem in said.warnings),
    )


def row_views(rows: Sequence[PolicyRow], *, config: Configuration) -> tuple[PolicyView, ...]:
    """The current versions of policies."""
    fleet = deployment_checks((row.current for row in rows), config=config)
    return tuple(version_view(row.current, row.queues, fleet.get(row.name)) for row in rows)


def detail_view(detail: PolicyDetail, *, config: Configuration) -> PolicyView:
    """The version that is shown; of a deleted policy no queue is left."""
    in_force = (detail.shown,) if detail.is_current else ()
    fleet = deployment_checks(in_force, config=config).get(detail.name)
    return version_view(detail.shown, detail.row.queues if detail.row else (), fleet)
