"""Lists of jobs, runs and decisions: of a filter, in an order, page by page."""

from collections.abc import Mapping

from django.db.models import Q, QuerySet

from scheduler.filters import DECISIONS, JOBS, RUNS, DecisionFilter, JobFilter, Order, RunFilter, text_of
from scheduler.filters.orders import NEWEST_DECISIONS, NEWEST_JOBS, NEWEST_RUNS
from scheduler.models import Decision, Job, Run
from scheduler.queries.columns import reserved_memory
from scheduler.queries.job_sets import FewJobSets
from scheduler.queries.keyset import Listing, SortColumn
from scheduler.queries.leads import Lead, jobs_found
from scheduler.queries.meaning import decisions_where, jobs_where, runs_where
from scheduler.queries.waiting import ASKED_OF_NODES
from scheduler.states import JobState, RunState

_NARROW = "So much takes too long to find. Narrow it: {narrow}; list by {sort}; or ask for fewer at once."
NARROW: Mapping[str, str] = {
    JOBS.things: _NARROW.format(
        narrow="name a queue, a state, or a time such as submitted>=-1d", sort="sort=-submitted"
    ),
    RUNS.things: _NARROW.format(
        narrow="name a queue, a state, a node, or a time such as leased>=-1d", sort="sort=-leased"
    ),
    DECISIONS.things: _NARROW.format(
        narrow="name a queue, a policy, or a time such as decided>=-1d", sort="sort=-decided"
    ),
}
"""How to ask for less, of each sort of things."""
_NOT_SHOWN = (
    *ASKED_OF_NODES, "last_executor", "last_node", "last_pool", "last_category", "last_subcategory", "recorded_at",
    "memory_factor", "memory_static_bytes", "gang_uniformity_label",
)  # fmt: skip
_SHOWN_OF_THE_JOB = ("id", "queue", "job_set", "owner", "namespace")
_NOT_SHOWN_OF_RUNS = (
    "resources", "cpu_request_millicores", "memory_factor", "memory_static_bytes", "node_id", "priority_class",
    "recorded_at", "attempted", "settled_at", "settle_tries", "settle_error",
    *(f"job__{field.name}" for field in Job._meta.concrete_fields if field.name not in _SHOWN_OF_THE_JOB),  # noqa: SLF001 - Django's own word for it
)  # fmt: skip
_JOB_COLUMNS: Mapping[str, SortColumn] = {
    "submitted": SortColumn(source="submitted_at", is_time=True),
    "stateChanged": SortColumn(source="state_changed_at", is_time=True),
    "finished": SortColumn(source="ended_at", is_time=True, can_be_null=True),
    "queue": SortColumn(source="queue_id"),
    "jobSet": SortColumn(source="job_set__name"),
    "state": SortColumn(source="state"),
    "owner": SortColumn(source="owner"),
    "namespace": SortColumn(source="namespace"),
    "priority": SortColumn(source="priority"),
    "cpu": SortColumn(source="cpu_request_millicores"),
    "memory": SortColumn(source=reserved_memory()),
    "runs": SortColumn(source="run_count"),
    "id": SortColumn(source="id"),
}
_RUN_COLUMNS: Mapping[str, SortColumn] = {
    "leased": SortColumn(source="leased_at", is_time=True),
    "started": SortColumn(source="started_at", is_time=True, can_be_null=True),
    "finished": SortColumn(source="ended_at", is_time=True, can_be_null=True),
    "number": SortColumn(source="number"),
    "queue": SortColumn(source="queue_id"),
    "executor": SortColumn(source="executor_id"),
    "node": SortColumn(source="node"),
    "exitCode": SortColumn(source="exit_code", can_be_null=True),
    "coreSeconds": SortColumn(source="core_seconds"),
    "memoryPeak": SortColumn(source="memory_peak_bytes", can_be_null=True),
    "id": SortColumn(source="id"),
}
_ENDED = {"finished": SortColumn(source="ended_at", is_time=True)}
"""Of what has ended for certain: in an order that an index has from both ends."""
_DECISION_COLUMNS: Mapping[str, SortColumn] = {
    "decided": SortColumn(source="decided_at", is_time=True),
    "policy": SortColumn(source="policy_name"),
    "verdict": SortColumn(source="verdict"),
    "run": SortColumn(source="run_id"),
}


def find_jobs(wanted: JobFilter) -> QuerySet[Job]:
    """The jobs of a filter, in no order, each with its job set loaded, and without what no list shows."""
    return _shown(jobs_found(wanted))


def _shown(meant: Q) -> QuerySet[Job]:
    return Job.objects.select_related("job_set").filter(meant).defer(*_NOT_SHOWN)


def find_runs(wanted: RunFilter) -> QuerySet[Run]:
    """The runs of a filter, in no order, each with error and decision, and with what its job is called and where it is."""
    found = Run.objects.select_related("error", "decision", "job__job_set").filter(runs_where(wanted))
    return found.defer(*_NOT_SHOWN_OF_RUNS)


def find_decisions(wanted: DecisionFilter) -> QuerySet[Decision]:
    """The decisions of a filter, in no order, each with run and job loaded."""
    return Decision.objects.select_related("run", "job").filter(decisions_where(wanted))


def list_jobs(wanted: JobFilter, order: Order = NEWEST_JOBS) -> Listing[Job]:
    """The jobs of a filter, in an order."""
    asked = f"jobs {text_of(wanted)}"
    begin = _begin(wanted, order)
    if begin is not None:
        jobs, walk = _shown(jobs_where(begin.others)), begin.first
    else:
        jobs, walk = _shown(jobs_where(wanted)) if _is_of_submission(order) else find_jobs(wanted), None
    columns = {**_JOB_COLUMNS, **_ENDED} if _have_ended(wanted, _ENDED_JOBS) else _JOB_COLUMNS
    return Listing(jobs, order=order, columns=columns, own="id", question=asked, walk=walk)


def _begin(wanted: JobFilter, order: Order) -> FewJobSets | Lead | None:
    """Where to begin in the order of submission, if not with all jobs."""
    few = FewJobSets.of(wanted) if order[0].name == "submitted" else None
    return few or (Lead.of(wanted) if _is_of_submission(order) else None)


def _is_of_submission(order: Order) -> bool:
    return len(order) == 1 and order[0].name == "submitted"


def list_runs(wanted: RunFilter, order: Order = NEWEST_RUNS) -> Listing[Run]:
    """The runs of a filter, in an order."""
    asked = f"runs {text_of(wanted)}"
    columns = {**_RUN_COLUMNS, **_ENDED} if _have_ended(wanted, _ENDED_RUNS) else _RUN_COLUMNS
    return Listing(find_runs(wanted), order=order, columns=columns, own="id", question=asked)


_ENDED_JOBS = frozenset(state for state in JobState if state.is_terminal)
_ENDED_RUNS = frozenset(state for state in RunState if not state.is_active)


def _have_ended(wanted: JobFilter | RunFilter, ended: frozenset[str]) -> bool:
    """The filter says so."""
    states = wanted.values("state")
    return bool(states) and ended.issuperset(map(str, states))


def list_decisions(wanted: DecisionFilter, order: Order = NEWEST_DECISIONS) -> Listing[Decision]:
    """The decisions of a filter, in an order."""
    asked = f"decisions {text_of(wanted)}"
    return Listing(find_decisions(wanted), order=order, columns=_DECISION_COLUMNS, own="run", question=asked)
