"""The questions of `tack bench history`: what is asked of the reads that pages and REST share, and what it may take.

L are lists of jobs, R lists of runs and decisions, G groups, D details, X what Armada's Lookout cannot be asked, T what
only Tack has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Model, QuerySet

from lookout.cli.filters import FAILED
from scheduler.filters import (
    JOBS,
    RUNS,
    RunFilter,
    decision_filter_of,
    job_filter_of,
    order_of,
    run_filter_of,
)
from scheduler.filters.orders import NEWEST_JOBS, NEWEST_RUNS, OLDEST_RUNS
from scheduler.models import Job, JobSpec, Run, RunError
from scheduler.models.clock import database_now
from scheduler.queries.failure_days import failure_days
from scheduler.queries.fingerprints import failure_groups
from scheduler.queries.groups import job_groups
from scheduler.queries.heat_map import Across, heat_map
from scheduler.queries.jobs import job_detail
from scheduler.queries.keyset import Listing
from scheduler.queries.listings import NARROW, find_jobs, list_decisions, list_jobs, list_runs
from scheduler.queries.patience import within
from scheduler.queries.retries import retry_statistics
from scheduler.queries.rollups import Span
from scheduler.queries.runs import run_detail
from scheduler.rollups import hour_of

QUEUES = (
    "queue-00",
    "queue-03",
    "queue-08",
    "queue-14",
    "queue-20",
    "queue-21",
    "queue-26",
    "queue-30",
    "queue-35",
    "queue-38",
)
CATEGORIES = tuple(f"category-{number:02}" for number in (0, 1, 2, 4, 5, 6, 7, 9, 10, 11))
NODES = tuple(
    f"cluster-{number:02}-node-{number * 7 % 80:02}" for number in (1, 3, 7, 9, 12, 18, 22, 27, 31, 39)
)
BAD_NODES = tuple(f"cluster-00-node-{number:02}" for number in (0, 2, 3, 5, 6, 8, 9, 11, 13, 15))
STEPS = tuple(range(10))
FAST, ROLLED_UP, PICTURE, GROUPED = 20.0, 20.0, 50.0, 400.0
"""Milliseconds, of the 95th percentile at a million jobs."""
MILLION = 1_000_000

type Ask = Callable[[Any], object]


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """Something to ask, with values to ask it for in turn."""

    id: str
    told: str
    ask: Ask
    values: Sequence[Any] = field(default=STEPS)
    find: Ask = _as_it_is
    """What is asked for each value, found beforehand: a row of such a number, the cursor of a page."""
    aim: float = FAST

    def prepared(self) -> Sequence[Any]:
        """All that it will be asked for, in turn."""
        return [self.find(value) for value in self.values]

    def aim_at(self, jobs: int) -> float:
        """What it may take with so long a past: twice as much beyond a million jobs."""
        return self.aim if jobs <= MILLION else 2 * self.aim


def _jobs(text: str, order: str = "", *, limit: int = 50) -> Ask:
    """Ask for a page of jobs. `{}` in the filter stands for the value."""
    keys = order_of(order, JOBS.things, NEWEST_JOBS)

    return lambda value: _page(lambda: list_jobs(job_filter_of(text.format(value)), keys), limit=limit)


def _page(listing: Callable[[], Listing[Any]], *, limit: int = 50, cursor: str = "") -> object:
    """As pages and REST ask for one."""
    with within(narrow=NARROW[JOBS.things]):
        return listing().page(limit=limit, cursor=cursor)[0]


def _ids(text: str) -> Ask:
    return lambda value: list(
        find_jobs(job_filter_of(text.format(value)))
        .order_by("-submitted_at", "-id")
        .values_list("id", flat=True)[:10_000]
    )


def _deep_place(queue: str) -> tuple[str, str]:
    """The queue, and the cursor that the page before two fifths of it gave out."""
    jobs = Job.objects.filter(queue=queue).order_by("-submitted_at", "-id")
    submitted_at, job_id = jobs.values_list("submitted_at", "id")[jobs.count() * 2 // 5]
    return queue, list_jobs(job_filter_of(f"queue={queue}")).cursor_at((submitted_at, job_id))


def _deep_page(place: tuple[str, str]) -> object:
    queue, cursor = place
    return _page(lambda: list_jobs(job_filter_of(f"queue={queue}")), cursor=cursor)


def _runs(text: str, order: str = "", *, limit: int = 50) -> Ask:
    keys = order_of(order, RUNS.things, NEWEST_RUNS)
    return lambda value: _page(lambda: list_runs(run_filter_of(text.format(value)), keys), limit=limit)


def _decisions(text: str) -> Ask:
    return lambda value: _page(lambda: list_decisions(decision_filter_of(text.format(value))))


def _groups(by: str, text: str = "", *, limit: int = 100) -> Ask:
    return lambda value: job_groups(job_filter_of(text.format(value)), by.split(","), limit=limit).groups


def _replay(queue: str) -> object:
    """The failed attempts of a queue in the order they ended, a page of a thousand."""
    wanted = run_filter_of(f"queue={queue}&state=failed&finished>=-7d")
    order = order_of("finished", RUNS.things, OLDEST_RUNS)
    return _page(lambda: list_runs(wanted, order), limit=1_000)


def _last(days: int) -> Span:
    return Span(since=database_now() - timedelta(days=days))


def _whole_days(days: int) -> Span:
    """So many, and what there is of today, as whoever names a day asks."""
    return Span(since=hour_of(database_now() - timedelta(days=days)).replace(hour=0))


def _late_that_day(days: int) -> Span:
    """The same from the first hour of that day on: nearly the whole of it is no whole day."""
    return Span(since=hour_of(database_now() - timedelta(days=days)).replace(hour=1))


def _job(step: int) -> Job:
    return _number(step, Job.objects.filter(state="failed"))


def _run(step: int) -> Run:
    return _number(step, Run.objects.filter(state="failed"))


def _fingerprint(step: int) -> str:
    return _run(step).fingerprint


def _number[M: Model](step: int, rows: QuerySet[M]) -> M:
    """One of them, the same each time."""
    return rows.order_by("pk")[step * 97]


_ACTIVE = "state=queued&state=leased&state=pending&state=running"
JOB_SETS = tuple((queue, queue[-2:]) for queue in QUEUES)
_FAILURES = "&".join(f"state={state}" for state in FAILED)
"""As `tack get failures` asks; it wants one more than it shows."""
SOME_NODES = (*BAD_NODES[:5], *NODES[:5])
VERDICTS = tuple(
    (f"policy-{name}", verdict) for name in "e1679" for verdict in ("retry", "fail_policy_limit")
)

QUESTIONS: Sequence[Question] = (
    Question(id="L1", told="front page, no filter", ask=_jobs("")),
    Question(id="L2", told="one queue", ask=_jobs("queue={}"), values=QUEUES),
    Question(id="L3", told="failed jobs of one queue", ask=_jobs("queue={}&state=failed"), values=QUEUES),
    Question(id="L4", told="one job set by prefix", ask=_jobs("queue={0[0]}&jobSet^=set-{0[1]}-000"), values=JOB_SETS),
    Question(id="L5", told="job set contains, two queues", ask=_jobs("queue={}&queue=queue-21&jobSet*=-0003"), values=QUEUES),
    Question(id="L6", told="failed since a time", ask=_jobs("state=failed&submitted>=-4{}h"), values=STEPS),
    Question(id="L7", told="annotation equals, 1 of 1,000", ask=_jobs("annotation.example.com/c=c12{}")),
    Question(id="L8", told="annotation begins with", ask=_jobs("annotation.example.com/e^=e999{}")),
    Question(id="L9", told="last run on a node", ask=_jobs("node.last={}"), values=NODES),
    Question(id="L9b", told="failed, last run on a bad node", ask=_jobs("node.last={}&state=failed"), values=BAD_NODES),
    Question(id="L10", told="active job sets only, of a queue", ask=_jobs("queue={}&activeJobSet=yes"), values=QUEUES),
    Question(id="L11", told="priority above, in a queue", ask=_jobs("queue={}&priority>1500"), values=QUEUES),
    Question(id="L12", told="deep page of a queue", find=_deep_place, ask=_deep_page, values=QUEUES),
    Question(id="L13", told="one job by id", find=lambda step: _job(step).id, ask=_jobs("id={}")),
    Question(id="L14", told="all queues by last state change", ask=_jobs("", "-stateChanged")),
    Question(id="L15", told="failed, owner begins with", ask=_jobs("owner^=user-1{}&state=failed")),
    Question(id="L16", told="10,000 ids for a bulk action", ask=_ids("queue={}&state=failed"), values=QUEUES),
    Question(id="L17", told="a queue gone quiet", ask=_jobs("queue=queue-39")),
    Question(id="R1", told="newest runs", ask=_runs("")),
    Question(id="R2", told="runs of a queue", ask=_runs("queue={}"), values=QUEUES),
    Question(id="R3", told="runs of a node", ask=_runs("node={}"), values=SOME_NODES),
    Question(id="R4", told="runs of a category", ask=_runs("category={}"), values=CATEGORIES),
    Question(id="R5", told="failed runs of a queue", ask=_runs("queue={}&state=failed"), values=QUEUES),
    Question(id="R6", told="runs of an executor", ask=_runs("executor=cluster-0{}")),
    Question(id="R7", told="newest decisions", ask=_decisions("")),
    Question(id="R8", told="decisions of a policy and a verdict", ask=_decisions("policy={0[0]}&verdict={0[1]}"), values=VERDICTS),
    Question(id="R9", told="newest failures", ask=_runs(_FAILURES, "-finished", limit=51)),
    Question(id="R10", told="runs that failed alike", ask=_runs("fingerprint={}"), find=_fingerprint),
    Question(id="G1", told="all jobs by queue and state", ask=_groups("queue"), aim=ROLLED_UP),
    Question(id="G2", told="one queue by job set", ask=_groups("jobSet", "queue={}"), values=QUEUES, aim=GROUPED),
    Question(id="G3", told="all jobs by state", ask=_groups("state"), aim=ROLLED_UP),
    Question(id="G4", told="one queue by namespace", ask=_groups("namespace", "queue={}"), values=QUEUES, aim=GROUPED),
    Question(id="G5", told="failed jobs by node of the last run", ask=_groups("node", "state=failed"), aim=GROUPED),
    Question(id="G6", told="by pool, of one executor", ask=_groups("pool", "executor.last=cluster-0{}"), aim=GROUPED),
    Question(id="G7", told="one queue by annotation", ask=_groups("annotation.example.com/b", "queue={}"), values=QUEUES, aim=GROUPED),
    Question(id="G8", told="active jobs of a queue by job set", ask=_groups("jobSet", f"queue={{}}&{_ACTIVE}", limit=1_000), values=QUEUES, aim=GROUPED),
    Question(id="D1", told="job spec", find=_job, ask=lambda job: JobSpec.objects.get(job=job)),
    Question(id="D2", told="job with everything", find=_job, ask=lambda job: job_detail(job.id)),
    Question(id="D3", told="run error", find=_run, ask=lambda run: RunError.objects.get(run=run)),
    Question(id="D4", told="run with error and decision", find=_run, ask=lambda run: run_detail(str(run.id))),
    Question(id="X1", told="last failure of a category", ask=_jobs("category.last={}"), values=CATEGORIES),
    Question(id="X2", told="any run failed on a bad node", ask=_jobs("node.any={}&runState.any=failed"), values=BAD_NODES),
    Question(id="X3", told="node by category, 7 days, 50 rows", ask=lambda _: heat_map(RunFilter(), Across.NODE, _whole_days(7)).rows, aim=PICTURE),
    Question(id="X3b", told="the same, but for an hour", ask=lambda _: heat_map(RunFilter(), Across.NODE, _late_that_day(7)).rows, aim=PICTURE),
    Question(id="X4", told="retried jobs of a queue", ask=_jobs("queue={}&retries>0"), values=QUEUES),
    Question(id="X5", told="replay of a queue's failures, 7 days", ask=_replay, values=QUEUES),
    Question(id="X6", told="categories per day, 30 days", ask=lambda _: failure_days(RunFilter(), _whole_days(30)), aim=PICTURE),
    Question(id="T1", told="failures alike, 7 days", ask=lambda _: failure_groups(RunFilter(), _last(7)).groups, aim=GROUPED),
    Question(id="T2", told="retries by policy and rule, 30 days", ask=lambda _: retry_statistics(decision_filter_of(""), _last(30)), aim=PICTURE),
    Question(id="T3", told="queue by category, 7 days", ask=lambda _: heat_map(RunFilter(), Across.QUEUE, _last(7)).rows, aim=PICTURE),
    Question(id="T4", told="one queue's failures by node, 7 days", ask=lambda queue: heat_map(run_filter_of(f"queue={queue}"), Across.NODE, _last(7)).rows, values=QUEUES, aim=GROUPED),
    Question(id="T5", told="somebody's jobs", ask=_jobs("owner=user-1{}")),
    Question(id="T6", told="jobs that failed alike", ask=_jobs("fingerprint.any={}"), find=_fingerprint),
    Question(id="T7", told="jobs that failed of a category once", ask=_jobs("category.any={}"), values=CATEGORIES),
)  # fmt: skip
QUESTION = {question.id: question for question in QUESTIONS}
