"""Cases to settle: ended runs of locked jobs, with everything their settlement depends on."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies.documents import DocumentInvalid
from policies.failures import Failure
from policies.growth import MemoryRecord
from policies.policy import Policy
from policies.tally import RunEnd, attempted_returns, attempted_runs, genuine_failures
from scheduler.config import Configuration
from scheduler.models import Job, QueuePolicy, RetryPolicy, RetryPolicyVersion, Run
from scheduler.queries.policies import current_versions
from scheduler.settlement import FAIL_FAST, Case, EndedRun, GoverningPolicy
from scheduler.states import FAILED_RUN_STATES, RunState


@dataclass(frozen=True, kw_only=True, slots=True)
class Unsettled:
    """A run that awaits settling, with its job and the job's whole history."""

    job: Job
    run: Run
    history: Sequence[Run]
    """Every run of the job up to and including this one, oldest first."""
    tries_before: int
    """How often it was tried before this claim."""


def unsettled_runs(jobs: Iterable[Job]) -> list[Unsettled]:
    """The unsettled runs of the jobs, in one query, in the order of job and run."""
    by_id = {job.id: job for job in jobs}
    histories: dict[str, list[Run]] = defaultdict(list)
    found = []
    for run in Run.objects.filter(job__in=list(by_id)).select_related("error").order_by("job_id", "number"):
        run.job = by_id[run.job_id]
        histories[run.job_id].append(run)
        if run.ended_at is not None and run.settled_at is None and not run.settle_error:
            found.append(
                Unsettled(
                    job=run.job,
                    run=run,
                    history=tuple(histories[run.job_id]),
                    tries_before=run.settle_tries,
                )
            )
    return found


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


def case_of(unsettled: Unsettled, governing: GoverningPolicy | None, *, config: Configuration) -> Case:
    """The value a settlement is a function of."""
    job, run = unsettled.job, unsettled.run
    ends = [_end_of(past) for past in unsettled.history]
    tally = attempted_returns if config.retry_policy.enabled else attempted_runs
    return Case(
        job_id=job.id,
        run=_ended_run(run),
        cancel_requested=job.cancel_requested_at is not None,
        fail_fast=job.annotations.get(FAIL_FAST) == "true",
        governing=governing,
        genuine_failures=genuine_failures(ends),
        attempts=tally(ends),
        memory=MemoryRecord(factor=job.memory_factor, static_bytes=job.memory_static_bytes),
        memory_request_bytes=job.memory_request_bytes,
        memory_limit_bytes=job.memory_limit_bytes,
        avoided_nodes=tuple(job.avoided_nodes),
        attempted_nodes=_attempted_nodes(unsettled.history),
    )


def _attempted_nodes(history: Iterable[Run]) -> tuple[str, ...]:
    """In the order they were tried. A node without the label cannot be told from others, and is not avoided."""
    return tuple(dict.fromkeys(past.node_id for past in history if past.attempted and past.node_id))


def _ended_run(run: Run) -> EndedRun:
    error = getattr(run, "error", None)
    return EndedRun(
        run_id=str(run.id),
        state=RunState(run.state),
        attempted=run.attempted,
        failure=Failure(category=run.category, subcategory=run.subcategory),
        message=error.message if error else "",
        reason=error.reason if error else "",
        containers=tuple(error.containers) if error else (),
    )


def _end_of(run: Run) -> RunEnd:
    return RunEnd(
        failed=run.state in FAILED_RUN_STATES,
        returned=run.state == RunState.LEASE_RETURNED,
        attempted=run.attempted,
        failure=Failure(category=run.category, subcategory=run.subcategory),
    )


def any_unsettled() -> bool:
    """Whether some run awaits settling."""
    return Run.objects.filter(ended_at__isnull=False, settled_at__isnull=True, settle_error="").exists()
