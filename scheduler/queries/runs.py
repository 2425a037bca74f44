"""Read runs, their output, and the decisions about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from scheduler.errors import NotFound
from scheduler.filters import DecisionFilter, RunFilter, decision_filter_of
from scheduler.models import Decision, Run, RunOutput
from scheduler.queries.jobs import decision_of
from scheduler.queries.meaning import decisions_where, runs_where
from scheduler.queries.pages import page_of
from scheduler.queries.sentences import decision_sentences, with_sentences


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPage:
    """Some of the runs of a filter, the one leased last first."""

    runs: tuple[Run, ...]
    sentences: Mapping[UUID, str]
    """Run id → what was decided about it and why; runs no policy decided about are absent."""
    next: str
    """The cursor of the page after this one; empty on the last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunDetail:
    """One run, with its job, error and decision loaded."""

    run: Run
    has_output: bool
    sentence: str
    """What was decided about it and why; empty when no policy decided, or not yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionRow:
    """A decision with its run and job loaded, and the sentence people read."""

    decision: Decision
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionPage:
    """Some of the decisions of a filter, the newest first."""

    rows: tuple[DecisionRow, ...]
    next: str
    """The cursor of the page after this one; empty on the last."""


def find_runs(wanted: RunFilter) -> QuerySet[Run]:
    """The runs of a filter, the one leased last first, each with error, decision and job."""
    runs = Run.objects.select_related("error", "decision", "job__job_set").filter(runs_where(wanted))
    return runs.order_by("-leased_at", "-id")


def run_page(wanted: RunFilter, *, limit: int = 50, cursor: str = "") -> RunPage:
    """A page of the runs of a filter. Raises Invalid."""
    runs, rest = page_of(
        find_runs(wanted), time="leased_at", key="id", parse=UUID, limit=limit, cursor=cursor
    )
    decisions = [decision for run in runs if (decision := decision_of(run))]
    return RunPage(runs=tuple(runs), sentences=decision_sentences(decisions), next=rest)


def run_detail(run_id: str) -> RunDetail:
    """One run. Raises NotFound."""
    run = find_runs(RunFilter()).filter(id=_id_of(run_id)).first()
    if run is None:
        raise NotFound("run", run_id[:60])
    decision = decision_of(run)
    return RunDetail(
        run=run,
        has_output=RunOutput.objects.filter(run=run).exists(),
        sentence=decision_sentences([decision])[run.id] if decision else "",
    )


def run_output(run_id: str) -> RunOutput | None:
    """What was kept of a run's output; None when nothing was. Raises NotFound for the run."""
    output = RunOutput.objects.filter(run=_id_of(run_id)).first()
    if output is None and not Run.objects.filter(id=_id_of(run_id)).exists():
        raise NotFound("run", run_id[:60])
    return output


def find_decisions(wanted: DecisionFilter) -> QuerySet[Decision]:
    """The decisions of a filter, the newest first, with run and job."""
    decisions = Decision.objects.select_related("run", "job").filter(decisions_where(wanted))
    return decisions.order_by("-decided_at", "-run_id")


def decision_page(wanted: DecisionFilter, *, limit: int = 50, cursor: str = "") -> DecisionPage:
    """A page of the decisions of a filter, in two queries. Raises Invalid."""
    found, rest = page_of(
        find_decisions(wanted), time="decided_at", key="run_id", parse=UUID, limit=limit, cursor=cursor
    )
    rows = (DecisionRow(decision=decision, sentence=sentence) for decision, sentence in with_sentences(found))
    return DecisionPage(rows=tuple(rows), next=rest)


def recent_decisions(*, policy: str, limit: int) -> list[Decision]:
    """The newest decisions of every version of a policy, each with its run and job loaded."""
    return list(find_decisions(decision_filter_of([("policy", policy)]))[:limit])


def _id_of(run_id: str) -> UUID:
    try:
        return UUID(run_id)
    except ValueError as error:
        raise NotFound("run", run_id[:60]) from error
