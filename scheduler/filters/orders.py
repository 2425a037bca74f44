"""In which order things are listed: at most two keys, as `sort=queue,-submitted` says them."""

from collections.abc import Mapping
from dataclasses import dataclass

from policies.fields import suggestion
from scheduler.filters.fields import DECISIONS, JOBS, RUNS
from scheduler.filters.reading import FilterInvalid, FilterProblem

MOST_KEYS = 2
_SHOWN = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class SortKey:
    """One key of an order."""

    name: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{'-' * self.descending}{self.name}"


type Order = tuple[SortKey, ...]

SORTS: Mapping[str, tuple[str, ...]] = {
    JOBS.things: (
        "submitted", "stateChanged", "finished", "queue", "jobSet", "state", "owner", "namespace", "priority", "cpu",
        "memory", "runs", "id",
    ),
    RUNS.things: (
        "leased", "started", "finished", "number", "queue", "executor", "node", "exitCode", "coreSeconds",
        "memoryPeak", "id",
    ),
    DECISIONS.things: ("decided", "policy", "verdict", "run"),
}  # fmt: skip
"""What each sort of things can be listed by. Whatever is without a value comes last."""

NEWEST_JOBS: Order = (SortKey(name="submitted", descending=True),)
NEWEST_RUNS: Order = (SortKey(name="leased", descending=True),)
OLDEST_RUNS: Order = (SortKey(name="number"),)
NEWEST_DECISIONS: Order = (SortKey(name="decided", descending=True),)


def order_of(text: str, things: str, otherwise: Order) -> Order:
    """The order a text says; `otherwise` for an empty one. Raises FilterInvalid."""
    parts = [part.strip() for part in text.split(",")] if text else []
    keys = tuple(SortKey(name=part.removeprefix("-"), descending=part.startswith("-")) for part in parts)
    known = SORTS[things]
    strange = next((key.name for key in keys if key.name not in known), None)
    if strange is not None:
        meant = suggestion(strange, known) or (
            f" It takes {', '.join(known)}, each with - for the other way."
        )
        raise _refused(f"sort takes no '{strange[:_SHOWN]}'.{meant}")
    if len(keys) > MOST_KEYS or len({key.name for key in keys}) < len(keys):
        raise _refused(f"sort takes at most {MOST_KEYS} different keys, such as sort={known[3]},-{known[0]}.")
    return keys or otherwise


def _refused(message: str) -> FilterInvalid:
    return FilterInvalid([FilterProblem(field="sort", message=message)])
