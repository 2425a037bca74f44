"""Retention: delete what is older than the configuration says, little by little, never what is not rolled up."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from scheduler.config import Configuration
from scheduler.models import HistoryMark
from scheduler.models.clock import database_now
from scheduler.models.expiry import (
    delete_jobs,
    delete_node_days,
    delete_outputs,
    forget_client_ids,
    old_client_ids,
    old_jobs,
    old_outputs,
)
from scheduler.models.history_mark import BEGINNING

MOST_JOBS = 500
MOST_LOOKED_AT = 5_000
"""Runs whose outputs, and jobs whose client ids one transaction looks for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What went, or would go."""

    jobs: int = 0
    """With their specs, runs, errors and decisions."""
    runs: int = 0
    events: int = 0
    outputs: int = 0
    client_ids: int = 0
    more: bool = False
    """There may be more to remove."""

    def __add__(self, other: "Removed") -> "Removed":
        """Both together."""
        return Removed(
            jobs=self.jobs + other.jobs,
            runs=self.runs + other.runs,
            events=self.events + other.events,
            outputs=self.outputs + other.outputs,
            client_ids=self.client_ids + other.client_ids,
            more=other.more,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Limits:
    """What was recorded before these moments is too old; the beginning of time where all is kept."""

    jobs: datetime
    outputs: datetime
    client_ids: datetime


@transaction.atomic
def remove_some(*, config: Configuration) -> Removed:
    """Remove the oldest of what is too old, as much as takes a fraction of a second.

    A job goes with everything about it or not at all. What somebody holds is passed over, and nobody is waited
    for; while others add up the history nothing is done.
    """
    mark = HistoryMark.objects.take()
    if mark is None:
        return Removed()
    limits = _limits(mark, config)
    jobs, runs, events, with_jobs = delete_jobs(limits.jobs, most=MOST_JOBS)
    outputs, mark.outputs_until = delete_outputs(mark.outputs_until, limits.outputs, most=MOST_LOOKED_AT)
    client_ids, mark.client_ids_until = forget_client_ids(
        mark.client_ids_until, limits.client_ids, most=MOST_LOOKED_AT
    )
    delete_node_days(limits.jobs)
    if jobs:
        mark.jobs_until = max(mark.jobs_until, limits.jobs)
    mark.save(update_fields=["jobs_until", "outputs_until", "client_ids_until"])
    behind = mark.outputs_until < limits.outputs or mark.client_ids_until < limits.client_ids
    return Removed(
        jobs=jobs,
        runs=runs,
        events=events,
        outputs=outputs + with_jobs,
        client_ids=client_ids,
        more=behind or jobs == MOST_JOBS,
    )


def what_is_too_old(*, config: Configuration) -> Removed:
    """What would go by and by, if nothing more grew old. Changes nothing."""
    mark = HistoryMark.objects.first() or HistoryMark()
    limits = _limits(mark, config)
    jobs, runs, events = old_jobs(limits.jobs)
    return Removed(
        jobs=jobs,
        runs=runs,
        events=events,
        outputs=old_outputs(max(limits.outputs, limits.jobs)),
        client_ids=old_client_ids(limits.client_ids),
    )


def _limits(mark: HistoryMark, config: Configuration) -> _Limits:
    now = database_now()
    added_up = min(mark.closed_until, mark.counted_until)

    def before(seconds: float) -> datetime:
        return min(now - timedelta(seconds=seconds), added_up) if seconds else BEGINNING

    return _Limits(
        jobs=before(config.job_retention_seconds),
        outputs=before(config.output_retention_seconds),
        client_ids=before(config.client_id_retention_seconds),
    )
