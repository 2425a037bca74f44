"""Cases to settle: ended runs of locked jobs, with everything their settlement depends on."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db import connection

from policies.documents import DocumentInvalid
from policies.failures import Failure
from policies.growth import MemoryRecord
from policies.policy import Policy
from policies.tally import RunEnd, attempted_returns, attempted_runs, genuine_failures
from scheduler.config import Configuration
from scheduler.models import QueuePolicy, RetryPolicy, RetryPolicyVersion, Run
from scheduler.models.bulk import uuid_array
from scheduler.models.settlements import Unsettled
from scheduler.queries.policies import current_versions
from scheduler.settlement import FAIL_FAST, Case, EndedRun, GoverningPolicy
from scheduler.states import FAILED_RUN_STATES, RunState

_UNSETTLED = """
    SELECT r.id::text, r.job_id::text, j.job_set_id, r.executor_id, r.node, r.pool, j.namespace, j.cancel_user,
           r.settle_tries, coalesce(e.message, ''), coalesce(e.reason, ''), coalesce(e.containers::text, '[]'),
           r.number,
           j.queue_id, j.cancel_requested_at IS NOT NULL, coalesce(j.annotations ->> %(fail_fast)s, ''),
           j.gang_id <> '' AND j.gang_cardinality > 1,
           j.cpu_request_millicores, j.memory_request_bytes, j.memory_limit_bytes, j.memory_factor,
           j.memory_static_bytes, j.resources::text, j.node_selector::text, j.affinity::text, j.tolerations::text,
           to_json(j.needed_fields)::text, to_json(j.avoided_nodes)::text,
           r.state, r.attempted, r.category, r.subcategory, r.node_id
      FROM scheduler_run r
      JOIN scheduler_job j ON j.id = r.job_id
 LEFT JOIN scheduler_runerror e ON e.run_id = r.id
     WHERE r.job_id = ANY(%(jobs)s::uuid[])
       AND r.ended_at IS NOT NULL AND r.settled_at IS NULL AND r.settle_error = ''
  ORDER BY r.job_id, r.number
"""
_HISTORY = """
    SELECT job_id::text, number, state, attempted, category, subcategory, node_id
      FROM scheduler_run WHERE job_id = ANY(%s::uuid[]) ORDER BY job_id, number
"""


class _End(NamedTuple):
    """One ended run, as far as tallies and avoidance look at it."""

    state: str
    attempted: bool
    category: str
    subcategory: str
    node_id: str

    @property
    def failure(self) -> Failure:
        return Failure(category=self.category, subcategory=self.subcategory)


class Facts(NamedTuple):
    """What the settlement of a run depends on, as the rows have it. In a storm most runs have the same facts."""

    queue: str
    cancel_requested: bool
    fail_fast: str
    in_gang: bool
    cpu_request_millicores: int
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    memory_factor: float
    memory_static_bytes: int
    resources: str
    node_selector: str
    affinity: str
    tolerations: str
    needed_fields: str
    avoided_nodes: str
    history: tuple[_End, ...]
    """Every run of the job up to this one, oldest first."""


def unsettled_runs(jobs: Collection[str]) -> dict[Facts, list[Unsettled]]:
    """The unsettled runs of the jobs, of each job the oldest, by what their settlement depends on.

    Two queries, the second only where some job has run before.
    """
    with connection.cursor() as cursor:
        cursor.execute(_UNSETTLED, {"jobs": uuid_array(jobs), "fail_fast": FAIL_FAST})
        rows = {row[1]: row for row in reversed(cursor.fetchall())}
    history = _earlier_runs({job_id: row[_WORDS] for job_id, row in rows.items() if row[_WORDS] > 1})
    found: dict[Facts, list[Unsettled]] = defaultdict(list)
    for job_id, row in reversed(rows.items()):
        ends = (*history.get(job_id, ()), _End._make(row[-5:]))
        found[Facts._make((*row[_WORDS + 1 : -5], ends))].append(Unsettled._make(row[:_WORDS]))
    return found


_WORDS = len(Unsettled._fields)


def _earlier_runs(numbers: Mapping[str, int]) -> Mapping[str, Sequence[_End]]:
    """Of each job the runs before the one with the number."""
    if not numbers:
        return {}
    earlier: dict[str, list[_End]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_HISTORY, [uuid_array(numbers)])
        for job_id, number, *end in cursor:
            if number < numbers[job_id]:
                earlier[job_id].append(_End._make(end))
    return earlier


def governing_policies(
    queues: Iterable[str], *, config: Configuration
) -> Mapping[str, GoverningPolicy | None]:
    """The policy with a say in each queue: its first attached one, or else the default policy.

    Three queries at most, whatever the number of queues. With the flag off no policy is read.
    """
    names = set(queues)
    if not config.retry_policy.enabled:
        return dict.fromkeys(names)
    first: dict[str, RetryPolicy] = {}
    # With their current versions, in one statement: a policy that is deleted from here on still decides.
    for attached in QueuePolicy.objects.filter(queue__in=names).select_related("policy").order_by("ordinal"):
        first.setdefault(attached.queue_id, attached.policy)
    default = _default_policy(config) if names - set(first) else None
    policies = _readable({policy for policy in (*first.values(), default) if policy})
    return {name: policies[policy.name] if (policy := first.get(name, default)) else None for name in names}


def _default_policy(config: Configuration) -> RetryPolicy | None:
    """None when none is configured. One that does not exist is like one that nobody can read."""
    name = config.retry_policy.default_policy_name
    if not name:
        return None
    return RetryPolicy.objects.filter(name=name).first() or RetryPolicy(name=name, version=0)


def _readable(policies: Collection[RetryPolicy]) -> dict[str, GoverningPolicy]:
    """Each policy by name, with its document read; never another policy in place of one that cannot be read."""
    documents = current_versions(policies)
    return {
        policy.name: GoverningPolicy(
            name=policy.name, version=policy.version, policy=_read(documents.get(policy.name))
        )
        for policy in policies
    }


def _read(version: RetryPolicyVersion | None) -> Policy | None:
    try:
        return version.to_policy() if version else None
    except DocumentInvalid:
        return None


def case_of(facts: Facts, governing: GoverningPolicy | None, *, config: Configuration) -> Case:
    """The value a settlement is a function of."""
    last, ends = facts.history[-1], [_run_end(end) for end in facts.history]
    tally = attempted_returns if config.retry_policy.enabled else attempted_runs
    return Case(
        run=EndedRun(state=RunState(last.state), attempted=last.attempted, failure=last.failure),
        cancel_requested=facts.cancel_requested,
        fail_fast=facts.fail_fast == "true",
        in_gang=facts.in_gang,
        governing=governing,
        genuine_failures=genuine_failures(ends),
        attempts=tally(ends),
        memory=MemoryRecord(factor=facts.memory_factor, static_bytes=facts.memory_static_bytes),
        cpu_request_millicores=facts.cpu_request_millicores,
        memory_request_bytes=facts.memory_request_bytes,
        memory_limit_bytes=facts.memory_limit_bytes,
        resources=json.loads(facts.resources),
        node_selector=json.loads(facts.node_selector),
        affinity=json.loads(facts.affinity),
        tolerations=json.loads(facts.tolerations),
        needed_fields=json.loads(facts.needed_fields),
        avoided_nodes=tuple(json.loads(facts.avoided_nodes)),
        attempted_nodes=_attempted_nodes(facts.history),
    )


def _attempted_nodes(history: Iterable[_End]) -> tuple[str, ...]:
    """In the order they were tried. A node without the label cannot be told from others, and is not avoided."""
    return tuple(dict.fromkeys(past.node_id for past in history if past.attempted and past.node_id))


def _run_end(end: _End) -> RunEnd:
    return RunEnd(
        failed=end.state in FAILED_RUN_STATES,
        returned=end.state == RunState.LEASE_RETURNED,
        attempted=end.attempted,
        failure=end.failure,
    )


def any_unsettled(*, beyond: int = 0) -> bool:
    """Whether more than so many runs await settling."""
    waiting = Run.objects.filter(ended_at__isnull=False, settled_at__isnull=True, settle_error="")
    return waiting.values_list("id")[beyond : beyond + 1].exists()
