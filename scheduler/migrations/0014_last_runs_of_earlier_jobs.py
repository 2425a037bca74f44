"""What is known of the last runs of jobs from before is filled in, a few thousand at a time, and indexed meanwhile.

Each batch is a transaction of its own that locks its jobs in id order, and indexes are made without holding up
writers, so that a large past may be filled in while Tack runs. Stopped midway it can be begun again.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models, transaction

BATCH = 5_000

_LOCK = "SELECT id FROM scheduler_job WHERE id > %s ORDER BY id LIMIT %s FOR NO KEY UPDATE"
# A statement of its own: its snapshot is younger than the locks.
_FILL = """
    UPDATE scheduler_job AS j
       SET last_executor = run.executor_id, last_node = run.node, last_pool = run.pool,
           last_category = CASE WHEN own.subcategory IS NULL THEN failed.category ELSE 'internal' END,
           last_subcategory = coalesce(own.subcategory, failed.subcategory)
      FROM scheduler_job AS old
      LEFT JOIN scheduler_run AS run ON run.job_id = old.id AND run.number = old.run_count
      LEFT JOIN LATERAL (SELECT r.category, r.subcategory FROM scheduler_run AS r
                          WHERE r.job_id = old.id AND r.state IN ('failed', 'lease_expired')
                       ORDER BY r.number DESC LIMIT 1) AS failed ON true
     CROSS JOIN LATERAL (SELECT CASE WHEN old.state = 'rejected' THEN 'job-rejected'
                                     WHEN old.state = 'failed' AND run.state = 'lease_returned'
                                     THEN 'max-runs-exceeded' END AS subcategory) AS own
     WHERE old.id = ANY(%s) AND j.id = old.id AND (old.run_count > 0 OR old.state = 'rejected')
"""


def fill(apps: Any, schema_editor: Any) -> None:
    last = "00000000-0000-0000-0000-000000000000"
    while ids := _fill_batch(schema_editor.connection, last):
        last = ids[-1]


def _fill_batch(connection: Any, after: object) -> Sequence[Any]:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(_LOCK, [after, BATCH])
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(_FILL, [ids])
        return ids


def _made_anew(index: models.Index) -> list[Any]:
    """What an attempt that was stopped has left of it goes first."""
    return [
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
        AddIndexConcurrently("job", index),
    ]


def _known(name: str, column: str) -> models.Index:
    """An index of the jobs that have a value, newest first."""
    newest = [models.OrderBy(models.F(key), descending=True) for key in ("submitted_at", "id")]
    condition = models.Q((f"{column}__isnull", False))
    return models.Index(models.F(column), *newest, condition=condition, name=name)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("scheduler", "0013_last_runs"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        *_made_anew(_known("job_by_last_node", "last_node")),
        *_made_anew(_known("job_by_last_executor", "last_executor")),
        *_made_anew(_known("job_by_last_category", "last_category")),
        *_made_anew(
            models.Index(
                condition=models.Q(("state", "failed")),
                fields=["queue"],
                include=(
                    "state", "last_executor", "last_node", "last_pool", "last_category", "last_subcategory",
                    "submitted_at", "state_changed_at", "ended_at",
                ),
                name="job_failed",
            ),
        ),
    ]  # fmt: skip
