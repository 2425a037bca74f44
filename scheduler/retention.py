"""Retention: delete what is older than the configuration says, little by little, never what is not rolled up."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db import transaction

from scheduler.config import Configuration
from scheduler.metrics import Count, Metric
from scheduler.models import Counter, HistoryMark
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

    @property
    def counts(self) -> dict[str, int]:
        """What of each went, by name; only what something went of."""
        counts = {name: count for name, count in asdict(self).items() if name != "more"}
        return {name: count for name, count in counts.items() if count}

    def __str__(self) -> str:
        return (
            f"{self.jobs:,} jobs with {self.runs:,} runs and {self.events:,} events; "
            f"{self.outputs:,} outputs; {self.client_ids:,} client ids"
        )

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
def remove_some(*, config: Configuration, waits: bool = False) -> Removed:
    """Remove the oldest of what is too old, as much as takes a fraction of a second.

    A job goes with everything about it or not at all. What somebody holds is passed over, and nobody is waited
    for; while others add up the history nothing is done, unless one `waits` for their step to end. What goes is
    counted.
    """
    mark = HistoryMark.objects.take(waits=waits)
    if mark is None:
        return Removed()
    limits = _limits(config, at_most=min(mark.closed_until, mark.counted_until))
    removed = _remove(mark, limits)
    mark.save(update_fields=["jobs_until", "outputs_until", "client_ids_until"])
    amounts = {Count(Metric.REMOVED, (what,)): float(count) for what, count in removed.counts.items()}
    Counter.objects.add(amounts, reset_every_seconds=config.metrics_reset_seconds)
    return removed


def _remove(mark: HistoryMark, limits: _Limits) -> Removed:
    """A step, noted in the mark. A client id of a job that is about to go is left to go with it."""
    jobs, runs, events, with_jobs = delete_jobs(limits.jobs, most=MOST_JOBS)
    if jobs:
        mark.jobs_until = max(mark.jobs_until, limits.jobs)
    delete_node_days(limits.jobs)
    outputs = delete_outputs(mark.outputs_until, limits.outputs, most=MOST_LOOKED_AT)
    client_ids = forget_client_ids(
        max(mark.client_ids_until, limits.jobs), limits.client_ids, most=MOST_LOOKED_AT
    )
    mark.outputs_until, mark.client_ids_until = outputs.until, client_ids.until
    return Removed(
        jobs=jobs,
        runs=runs,
        events=events,
        outputs=outputs.gone + with_jobs,
        client_ids=client_ids.gone,
        more=outputs.more or client_ids.more or jobs == MOST_JOBS,
    )


def what_is_too_old(*, config: Configuration) -> Removed:
    """What would go by and by once it is added up, if nothing more grew old. Changes nothing."""
    limits = _limits(config, at_most=database_now())
    jobs, runs, events = old_jobs(limits.jobs)
    return Removed(
        jobs=jobs,
        runs=runs,
        events=events,
        outputs=old_outputs(max(limits.outputs, limits.jobs)),
        client_ids=old_client_ids(limits.jobs, limits.client_ids),
    )


def _limits(config: Configuration, *, at_most: datetime) -> _Limits:
    now = database_now()

    def before(seconds: float) -> datetime:
        return min(now - timedelta(seconds=seconds), at_most) if seconds else BEGINNING

    return _Limits(
        jobs=before(config.job_retention_seconds),
        outputs=before(config.output_retention_seconds),
        client_ids=before(config.client_id_retention_seconds),
    )
