"""Runs are listed from indexes in their order, and groups of a queue or an executor are read from an index alone.

Indexes are made without holding up writers; what an attempt that was stopped has left of one goes first.
"""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


# What stood there before, for the way back.
_BEFORE = {
    "run_by_category": "scheduler_run (category, ended_at DESC) WHERE NOT (category = '')",
    "run_by_kind": "scheduler_run (fingerprint, ended_at DESC) WHERE NOT (fingerprint = '')",
    "run_by_node": "scheduler_run (node, state) INCLUDE (job_id, number)",
    "job_by_queue": "scheduler_job (queue_id, submitted_at DESC, id DESC)",
    "job_by_last_executor": "scheduler_job (last_executor, submitted_at DESC, id DESC) WHERE last_executor IS NOT NULL",
}


def _made_anew(model: str, index: models.Index) -> list[Any]:
    """Until one that is replaced is there again, what it served takes longer."""
    before = _BEFORE.get(index.name)
    return [
        migrations.RunSQL(
            f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}",
            f"CREATE INDEX CONCURRENTLY {index.name} ON {before}" if before else migrations.RunSQL.noop,
            state_operations=[migrations.RemoveIndex(model, index.name)] if before else [],
        ),
        AddIndexConcurrently(model, index),
    ]


def _newest(*keys: str, **more: Any) -> models.Index:
    newest = [models.OrderBy(models.F(key), descending=True) for key in ("leased_at", "id")]
    return models.Index(*(models.F(key) for key in keys), *newest, **more)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("scheduler", "0022_annotations_of_earlier_jobs"),
    ]

    operations = [
        *_made_anew("run", _newest(name="run_newest")),
        *_made_anew("run", _newest("queue", name="run_by_queue")),
        *_made_anew(
            "run",
            models.Index(
                models.F("ended_at"),
                models.F("id"),
                condition=models.Q(("state__in", ["failed", "lease_expired"])),
                name="run_failed",
            ),
        ),
        *_made_anew(
            "run",
            models.Index(
                fields=["category", "-leased_at", "-id"],
                include=("state", "job", "job_submitted_at"),
                condition=models.Q(("category", ""), _negated=True),
                name="run_by_category",
            ),
        ),
        *_made_anew(
            "run",
            models.Index(
                fields=["fingerprint", "-leased_at", "-id"],
                include=("state", "job", "job_submitted_at"),
                condition=models.Q(("fingerprint", ""), _negated=True),
                name="run_by_kind",
            ),
        ),
        *_made_anew(
            "run",
            models.Index(
                fields=["node", "-leased_at", "-id"],
                include=("state", "job", "job_submitted_at"),
                name="run_by_node",
            ),
        ),
        *_made_anew(
            "job",
            models.Index(
                fields=["queue", "-submitted_at", "-id"],
                include=("namespace", "job_set", "state", "state_changed_at", "ended_at"),
                name="job_by_queue",
            ),
        ),
        *_made_anew(
            "job",
            models.Index(
                fields=["last_executor", "-submitted_at", "-id"],
                include=("last_pool", "state", "state_changed_at", "ended_at"),
                condition=models.Q(("last_executor__isnull", False)),
                name="job_by_last_executor",
            ),
        ),
    ]
