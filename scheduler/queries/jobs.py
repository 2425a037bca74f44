"""Read jobs: lists by filter, counts by state, and one job with everything known about it."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet, ObjectDoesNotExist
from django.db import connection
from django.db.models import Q

from policies.failures import Failure
from scheduler.errors import NotFound
from scheduler.filters import Condition, JobFilter, Order
from scheduler.filters.orders import NEWEST_JOBS
from scheduler.models import Decision, Event, Job, JobSpec, Run, RunOutput
from scheduler.models.bulk import among
from scheduler.models.ulids import uuid_of
from scheduler.queries.counting import BOUND
from scheduler.queries.failures import last_failed_run, last_failure
from scheduler.queries.groups import job_groups
from scheduler.queries.listings import find_jobs, list_jobs
from scheduler.queries.queues import attached_policies
from scheduler.queries.sentences import decision_sentences
from scheduler.queries.waiting import reasons_for_waiting, waiting_because
from scheduler.selection import OPEN_JOB_STATES
from scheduler.states import JobState

EVENTS_SHOWN = 200
_OF_RUNS = (
    "job_id", "number", "executor", "node", "pool", "state", "leased_at", "pending_at", "started_at", "ended_at",
    "settled_at", "exit_code", "category", "subcategory",
    "decision__verdict", "decision__policy_used_after", "decision__policy_limit",
)  # fmt: skip
"""What lists show of runs; the rest would be most of what is read for them."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job as lists show it, with all its runs."""

    job: Job
    runs: tuple[Run, ...]
    """Oldest first, each with its decision loaded."""
    waiting_because: str = ""

    @property
    def last_run(self) -> Run | None:
        """The newest run, ended or not."""
        return self.runs[-1] if self.runs else None

    @cached_property
    def last_failed_run(self) -> Run | None:
        """The newest run that failed."""
        return last_failed_run(self.runs)

    @cached_property
    def last_failure(self) -> Failure | None:
        """What it failed of last, as its events say, perhaps without a category; None when it never failed."""
        return last_failure(self.job, self.runs)

    @property
    def last_decision(self) -> Decision | None:
        """What was decided about the newest failed run; None when no policy decided, or not yet."""
        return decision_of(self.last_failed_run)

    @property
    def last_verdict(self) -> str:
        """The word of that decision, or nothing."""
        return self.last_decision.verdict if self.last_decision else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPage:
    """Some of the jobs of a filter."""

    rows: tuple[JobRow, ...]
    next: str
    """The cursor of the page after this one; empty on the last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateCounts:
    """How many jobs are in each state."""

    counts: Mapping[JobState, int]
    is_exact: bool
    """Else there are more than these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDetail:
    """One job with everything known about it."""

    row: JobRow
    pod_spec: Mapping[str, Any]
    """As submitted."""
    sentences: Mapping[UUID, str]
    """Run id → what was decided about it and why; runs no policy decided about are absent."""
    runs_with_output: frozenset[str]
    """Ids of runs whose output was kept."""
    retry_policies: tuple[str, ...]
    """Attached to its queue, in order of precedence."""
    events: tuple[Event, ...] = field(default=())
    """Newest first, at most EVENTS_SHOWN."""
    more_events: bool = False

    @property
    def job(self) -> Job:
        return self.row.job

    @property
    def runs(self) -> tuple[Run, ...]:
        """Oldest first, each with its error and decision loaded."""
        return self.row.runs

    @property
    def waiting_because(self) -> str:
        """Why it waits, while it is queued."""
        return self.row.waiting_because


def job_page(wanted: JobFilter, *, order: Order = NEWEST_JOBS, limit: int = 50, cursor: str = "") -> JobPage:
    """A page of the jobs of a filter, in a fixed number of queries whatever its size. Raises Invalid."""
    jobs, rest = list_jobs(wanted, order).page(limit=limit, cursor=cursor)
    return JobPage(rows=tuple(job_rows(jobs)), next=rest)


def job_rows(jobs: Collection[Job]) -> list[JobRow]:
    """Jobs with their runs and reasons for waiting, in their order."""
    runs: dict[str, list[Run]] = defaultdict(list)
    theirs = Run.objects.filter(job__in=among(uuid_of(job.id) for job in jobs))
    for run in theirs.select_related("decision").only(*_OF_RUNS).order_by("job_id", "number"):
        runs[run.job_id].append(run)
    waiting = reasons_for_waiting(jobs)
    return [
        JobRow(job=job, runs=tuple(runs[job.id]), waiting_because=waiting.get(job.id, "")) for job in jobs
    ]


def state_counts(wanted: JobFilter, *, bound: int = BOUND) -> StateCounts:
    """How many jobs of the filter are in each state, whatever states it names; every state is there.

    Where there are more than `bound`, only so many of them are counted; of all jobs there are totals.
    """
    everywhere = wanted.without("state")
    counted = _counted_by_state(everywhere, bound + 1, Q())
    is_exact = sum(counted.values()) <= bound
    if not is_exact and not everywhere:
        counted, is_exact = _totals_by_state(), True
    return StateCounts(counts=dict.fromkeys(JobState, 0) | counted, is_exact=is_exact)


def open_counts(wanted: JobFilter, *, bound: int, besides: Q | None = None) -> StateCounts:
    """How many jobs of the filter are in each open state, of those that it names, counted up to `bound` in all.

    `besides` must hold as well.
    """
    is_open = Condition(field="state", values=OPEN_JOB_STATES)
    counted = _counted_by_state(wanted & JobFilter((is_open,)), bound + 1, besides or Q())
    total = sum(counted.values())
    return StateCounts(counts=dict.fromkeys(OPEN_JOB_STATES, 0) | counted, is_exact=total <= bound)


def _counted_by_state(wanted: JobFilter, most: int, besides: Q) -> dict[JobState, int]:
    found = find_jobs(wanted).filter(besides).values("state")[:most]
    try:
        sql, parameters = found.query.sql_with_params()
    except EmptyResultSet:  # the filter contradicts itself
        return {}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT state, count(*) FROM ({sql}) AS found GROUP BY state", parameters)  # noqa: S608 - Django's
        return {JobState(state): count for state, count in cursor.fetchall()}


def _totals_by_state() -> dict[JobState, int]:
    groups = job_groups(JobFilter(), ["state"]).groups
    return {JobState(str(group.keys[0])): group.jobs for group in groups}


def job_detail(job_id: str) -> JobDetail:
    """One job with spec, runs, decisions and newest events, in a fixed number of queries. Raises NotFound."""
    job = find_job(job_id)
    runs = tuple(Run.objects.filter(job=job).select_related("error", "decision").order_by("number"))
    for run in runs:
        run.job = job
    decisions = [decision for run in runs if (decision := decision_of(run))]
    newest = list(Event.objects.filter(job=job).order_by("-number")[: EVENTS_SHOWN + 1])
    spec = JobSpec.objects.filter(job=job).first()
    with_output = RunOutput.objects.filter(run__job=job).values_list("run_id", flat=True)
    return JobDetail(
        row=JobRow(job=job, runs=runs, waiting_because=waiting_because(job)),
        sentences=decision_sentences(decisions),
        pod_spec=spec.pod_spec if spec else {},
        runs_with_output=frozenset(str(run_id) for run_id in with_output),
        retry_policies=attached_policies([job.queue_id]).get(job.queue_id, ()),
        events=tuple(newest[:EVENTS_SHOWN]),
        more_events=len(newest) > EVENTS_SHOWN,
    )


def find_job(job_id: str) -> Job:
    """A job with its job set loaded. Raises NotFound, also for what is no job id at all."""
    try:
        return Job.objects.select_related("job_set").get(id=uuid_of(job_id))
    except (ValueError, Job.DoesNotExist) as error:
        raise NotFound("job", job_id[:60]) from error


def decision_of(run: Run | None) -> Decision | None:
    """The decision about a run that was read with it, if there is one."""
    try:
        return run.decision if run else None
    except ObjectDoesNotExist:
        return None
