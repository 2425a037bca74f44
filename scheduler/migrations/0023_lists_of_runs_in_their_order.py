"""Runs are listed from indexes in their order, and groups of a queue or an executor are read from an index alone.

Indexes are made without holding up writers; what an attempt that was stopped has left of one goes first.
"""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


def _made_anew(model: str, index: models.Index, *, instead: bool = False) -> list[Any]:
    """`instead` of one of the same name; until it is there again, what that served takes longer."""
    before = [migrations.RemoveIndex(model, index.name)] if instead else []
    gone = f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}"
    return [
        migrations.RunSQL(gone, migrations.RunSQL.noop, state_operations=before),
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
            instead=True,
        ),
        *_made_anew(
            "run",
            models.Index(
                fields=["fingerprint", "-leased_at", "-id"],
                include=("state", "job", "job_submitted_at"),
                condition=models.Q(("fingerprint", ""), _negated=True),
                name="run_by_kind",
            ),
            instead=True,
        ),
        *_made_anew(
            "run",
            models.Index(
                fields=["node", "-leased_at", "-id"],
                include=("state", "job", "job_submitted_at"),
                name="run_by_node",
            ),
            instead=True,
        ),
        *_made_anew(
            "job",
            models.Index(
                fields=["queue", "-submitted_at", "-id"],
                include=("namespace", "job_set", "state", "state_changed_at", "ended_at"),
                name="job_by_queue",
            ),
            instead=True,
        ),
        *_made_anew(
            "job",
            models.Index(
                fields=["last_executor", "-submitted_at", "-id"],
                include=("last_pool", "state", "state_changed_at", "ended_at"),
                condition=models.Q(("last_executor__isnull", False)),
                name="job_by_last_executor",
            ),
            instead=True,
        ),
    ]
