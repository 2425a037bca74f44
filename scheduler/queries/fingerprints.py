"""Failures of one kind together: runs whose errors are alike but for numbers, ids and addresses."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet

from scheduler.errors import Invalid
from scheduler.filters import RunFilter
from scheduler.models.ulids import ulid_of
from scheduler.queries.failed_runs import NARROW, chosen_runs
from scheduler.queries.patience import within
from scheduler.queries.rollups import Span, rows_of

MOST_GROUPS = 200
PLACES = 5
"""Queues and nodes that are named of each group: those with the most of its failures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """The newest failure of a group."""

    run_id: UUID
    job_id: str
    category: str
    subcategory: str
    exit_code: int | None
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroup:
    """Failed runs with one fingerprint."""

    fingerprint: str
    """Empty for failures that nobody said anything about."""
    failures: int
    first_recorded_at: datetime
    last_recorded_at: datetime
    queues: dict[str, int]
    """Failures by queue: at most PLACES queues, the worst first."""
    queue_count: int
    nodes: dict[str, int]
    node_count: int
    example: Example


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureGroups:
    """Groups, the largest first."""

    groups: tuple[FailureGroup, ...]
    more: bool
    """There are others, smaller ones."""


def failure_groups(wanted: RunFilter, span: Span, *, limit: int = 50) -> FailureGroups:
    """Failed runs of a filter that were recorded in a span, by fingerprint, in one query.

    Raises Invalid, and TooMuchAsked when the database cannot answer in time.
    """
    if not 1 <= limit <= MOST_GROUPS:
        raise Invalid(f"limit takes a number from 1 to {MOST_GROUPS}.", path="limit")
    try:
        chosen, parameters = chosen_runs(wanted, span)
    except EmptyResultSet:  # the filter contradicts itself
        return FailureGroups(groups=(), more=False)
    with within(narrow=NARROW, parallel=True):
        found = rows_of(_GROUPS.format(chosen=chosen, limit=limit + 1, places=PLACES), parameters)
    return FailureGroups(groups=tuple(_group(row) for row in found[:limit]), more=len(found) > limit)


_PLACES = """
    SELECT turn, json_object_agg({of}, failures ORDER BY place) AS worst, max(places) AS places
      FROM (SELECT turn, {of}, count(*) AS failures, count(*) OVER (PARTITION BY turn) AS places,
                   row_number() OVER (PARTITION BY turn ORDER BY count(*) DESC, {of}) AS place
              FROM theirs GROUP BY turn, {of}) AS by_place
     WHERE place <= {{places}} GROUP BY turn
"""
# A group goes by its turn once it has one: numbers are sorted and compared in a fraction of the time.
_GROUPS = f"""
    WITH found AS MATERIALIZED (
        SELECT id, fingerprint, queue_id, node, recorded_at FROM scheduler_run WHERE id IN ({{chosen}})
    ), top AS MATERIALIZED (
        SELECT *, row_number() OVER (ORDER BY failures DESC, fingerprint) AS turn
          FROM (SELECT fingerprint, count(*) AS failures, min(recorded_at) AS first, max(recorded_at) AS last
                  FROM found GROUP BY fingerprint ORDER BY count(*) DESC, fingerprint LIMIT {{limit}}) AS largest
    ), theirs AS MATERIALIZED (
        SELECT turn, id, queue_id, node, recorded_at = last AS newest FROM found JOIN top USING (fingerprint)
    ), queues AS ({_PLACES.format(of="queue_id")}), nodes AS ({_PLACES.format(of="node")}),
    newest AS (SELECT DISTINCT ON (turn) turn, id FROM theirs WHERE newest ORDER BY turn, id)
    SELECT top.fingerprint, top.failures, top.first, top.last, queues.worst, queues.places, nodes.worst, nodes.places,
           r.id, r.job_id, r.category, r.subcategory, r.exit_code, coalesce(e.message, '')
      FROM top JOIN queues USING (turn) JOIN nodes USING (turn) JOIN newest USING (turn)
      JOIN scheduler_run r ON r.id = newest.id LEFT JOIN scheduler_runerror e ON e.run_id = r.id
  ORDER BY turn
"""  # noqa: S608 - the names stand above


def _group(row: Sequence[Any]) -> FailureGroup:
    fingerprint, failures, first, last, queues, queue_count, nodes, node_count, *newest = row
    run_id, job_id, category, subcategory, exit_code, message = newest
    return FailureGroup(
        fingerprint=fingerprint,
        failures=failures,
        first_recorded_at=first,
        last_recorded_at=last,
        queues=_places(queues),
        queue_count=queue_count,
        nodes=_places(nodes),
        node_count=node_count,
        example=Example(
            run_id=run_id,
            job_id=ulid_of(job_id),
            category=category,
            subcategory=subcategory,
            exit_code=exit_code,
            message=message,
        ),
    )


def _places(told: Any) -> dict[str, int]:
    return dict(json.loads(told) if isinstance(told, str) else told)
