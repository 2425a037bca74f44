"""The filter language: what an address asks about jobs, runs and decisions, as frozen values.

`job_filter_of("queue=nightly&node.last!=gpu-07")` reads what stands in an address, on a page, in the API, in a kept
view or a bulk action; `text_of` writes it back. What it means in the database stands in `scheduler.queries.meaning`.
"""

from scheduler.filters.conditions import Condition, DecisionFilter, Filter, JobFilter, Match, RunFilter, Scope
from scheduler.filters.fields import DECISIONS, JOBS, RUNS, FilterField, Grammar
from scheduler.filters.kinds import Ago, Kind, Value, written_value
from scheduler.filters.orders import Order, SortKey, order_of
from scheduler.filters.reading import (
    MOST_CONDITIONS,
    MOST_VALUES,
    FilterInvalid,
    FilterProblem,
    Pair,
    decision_filter_of,
    job_filter_of,
    job_filter_on,
    pairs_of,
    run_filter_of,
    text_of,
)
from scheduler.filters.wording import RELATIONS, in_words, said

__all__ = [
    "DECISIONS", "JOBS", "MOST_CONDITIONS", "MOST_VALUES", "RELATIONS", "RUNS", "Ago", "Condition", "DecisionFilter", "Filter",
    "FilterField", "FilterInvalid", "FilterProblem", "Grammar", "JobFilter", "Kind", "Match", "Order", "Pair", "RunFilter",
    "Scope", "SortKey", "Value", "decision_filter_of", "in_words", "job_filter_of", "job_filter_on", "order_of", "pairs_of", "run_filter_of", "said", "text_of",
    "written_value",
]  # fmt: skip
