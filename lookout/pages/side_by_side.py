"""The runs of a job side by side: one fact per row, what changed from the run before in strong ink."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lookout.templatetags.figures import exact_duration
from policies.quantity import measured_bytes, rounded_bytes
from scheduler.models import Run
from scheduler.queries.jobs import decision_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The fact of one run; empty where it has none."""

    text: str
    changed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FactRow:
    """One fact of every run, oldest first."""

    label: str
    cells: tuple[Cell, ...]


def side_by_side(runs: Sequence[Run]) -> list[FactRow]:
    """The rows in which any run has something to say."""
    rows = [_row(label, [fact(run) for run in runs]) for label, fact in _FACTS.items()]
    rows.insert(3, _row("Avoids", _avoided(runs)))
    return [row for row in rows if any(cell.text for cell in row.cells)]


def _row(label: str, texts: list[str]) -> FactRow:
    before = [*texts[:1], *texts[:-1]]
    cells = (Cell(text=text, changed=text != old) for text, old in zip(texts, before, strict=True))
    return FactRow(label=label, cells=tuple(cells))


def _avoided(runs: Sequence[Run]) -> list[str]:
    """What each run was kept away from: what the decisions before it had added up to."""
    texts, avoided = [], ""
    for run in runs:
        texts.append(avoided)
        decision = decision_of(run)
        if decision is not None and decision.avoids_nodes and decision.verdict == "retry":
            avoided = ", ".join(decision.avoids_nodes)
    return texts


def _memory(run: Run) -> str:
    size = run.memory_limit_bytes or run.memory_request_bytes
    return rounded_bytes(size) if size else ""


def _peak(run: Run) -> str:
    return measured_bytes(run.memory_peak_bytes) if run.memory_peak_bytes else ""


def _category(run: Run) -> str:
    return f"{run.category}/{run.subcategory}" if run.subcategory else run.category


def _exit(run: Run) -> str:
    return "" if run.exit_code is None else str(run.exit_code)


def _ran(run: Run) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    return exact_duration((run.ended_at - run.started_at).total_seconds())


def _verdict(run: Run) -> str:
    decision = decision_of(run)
    return decision.verdict if decision else run.undecided_because


_FACTS: dict[str, Callable[[Run], str]] = {
    "Memory": _memory,
    "Peak memory": _peak,
    "Node": lambda run: run.node,
    "Category": _category,
    "Exit code": _exit,
    "Ran": _ran,
    "Verdict": _verdict,
}
