"""Read runs, their output, and the decisions about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from scheduler.errors import NotFound
from scheduler.filters import DecisionFilter, Order, RunFilter, decision_filter_of
from scheduler.filters.orders import NEWEST_DECISIONS, NEWEST_RUNS
from scheduler.models import Decision, Run, RunOutput
from scheduler.queries.jobs import decision_of
from scheduler.queries.listings import find_runs, list_decisions, list_runs
from scheduler.queries.sentences import decision_sentences, with_sentences


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPage:
    """Some of the runs of a filter."""

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
    """Some of the decisions of a filter."""

    rows: tuple[DecisionRow, ...]
    next: str
    """The cursor of the page after this one; empty on the last."""


def run_page(wanted: RunFilter, *, order: Order = NEWEST_RUNS, limit: int = 50, cursor: str = "") -> RunPage:
    """A page of the runs of a filter, in a fixed number of queries. Raises Invalid."""
    runs, rest = list_runs(wanted, order).page(limit=limit, cursor=cursor)
    return RunPage(runs=tuple(runs), sentences=sentences_of(runs), next=rest)


def sentences_of(runs: Iterable[Run]) -> Mapping[UUID, str]:
    """Run id → what was decided about it and why; runs no policy decided about are absent."""
    return decision_sentences([decision for run in runs if (decision := decision_of(run))])


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


def decision_page(
    wanted: DecisionFilter, *, order: Order = NEWEST_DECISIONS, limit: int = 50, cursor: str = ""
) -> DecisionPage:
    """A page of the decisions of a filter, in two queries. Raises Invalid."""
    found, rest = list_decisions(wanted, order).page(limit=limit, cursor=cursor)
    rows = (DecisionRow(decision=decision, sentence=sentence) for decision, sentence in with_sentences(found))
    return DecisionPage(rows=tuple(rows), next=rest)


def recent_decisions(*, policy: str, limit: int) -> list[Decision]:
    """The newest decisions of every version of a policy, each with its run and job loaded."""
    return list_decisions(decision_filter_of([("policy", policy)])).page(limit=limit)[0]


def _id_of(run_id: str) -> UUID:
    try:
        return UUID(run_id)
    except ValueError as error:
        raise NotFound("run", run_id[:60]) from error
