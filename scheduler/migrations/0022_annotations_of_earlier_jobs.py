"""Annotations of jobs from before, a few thousand jobs at a time; the index they were found by goes.

Each batch is a transaction of its own, so that a large past may be filled in while Tack runs. Stopped midway it can be
begun again.
"""

from collections.abc import Sequence
from typing import Any

from django.db import migrations, transaction

BATCH = 5_000

# Jobs that came meanwhile are there already, by the trigger.
_LOCK = "SELECT id FROM scheduler_job WHERE id > %s ORDER BY id LIMIT %s FOR KEY SHARE"
_FILL = """
    INSERT INTO scheduler_jobannotation (key, value, job_submitted_at, job_id)
    SELECT a.key, left(coalesce(a.value, ''), 200), job.submitted_at, job.id
      FROM scheduler_job AS job CROSS JOIN LATERAL jsonb_each_text(job.annotations) AS a
     WHERE job.id = ANY(%s) ON CONFLICT DO NOTHING
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


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("scheduler", "0021_annotations_stand_by_themselves"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS job_by_annotation",
            "CREATE INDEX CONCURRENTLY job_by_annotation ON scheduler_job USING gin (annotations jsonb_path_ops)",
            state_operations=[migrations.RemoveIndex("job", "job_by_annotation")],
        ),
    ]
