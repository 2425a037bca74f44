"""Runs know when their job was submitted; those from before are told a few thousand at a time.

Each batch is a transaction of its own, so that a large past may be filled in while Tack runs. Stopped midway it can be
begun again.
"""

from collections.abc import Sequence
from typing import Any

from django.db import migrations, models, transaction

BATCH = 5_000

# In the order of the key, each batch after the last run of the one before. Jobs are not touched, so none is locked.
_FILL = """
    WITH batch AS MATERIALIZED (
        SELECT id, job_id FROM scheduler_run WHERE id > %s ORDER BY id LIMIT %s
    ), told AS (
        UPDATE scheduler_run AS r SET job_submitted_at = j.submitted_at
          FROM batch JOIN scheduler_job j ON j.id = batch.job_id
         WHERE r.id = batch.id AND r.job_submitted_at IS NULL
    )
    SELECT id FROM batch ORDER BY id DESC LIMIT 1
"""
_ADD = "ALTER TABLE scheduler_run ADD COLUMN IF NOT EXISTS job_submitted_at timestamptz"
_REMOVE = "ALTER TABLE scheduler_run DROP COLUMN job_submitted_at"
# For whoever leases runs and does not know of it yet.
_TELL = """
    CREATE OR REPLACE FUNCTION scheduler_run_came() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.job_submitted_at := (SELECT submitted_at FROM scheduler_job WHERE id = NEW.job_id);
        RETURN NEW;
    END $$;
    CREATE OR REPLACE TRIGGER run_knows_submission BEFORE INSERT ON scheduler_run
        FOR EACH ROW WHEN (NEW.job_submitted_at IS NULL) EXECUTE FUNCTION scheduler_run_came();
"""
_TELL_NO_MORE = """
    DROP TRIGGER run_knows_submission ON scheduler_run;
    DROP FUNCTION scheduler_run_came();
"""
# A constraint that is known to hold spares a look at every run under a lock that stops all others: each by itself, as the
# lock of one is held until the end of its transaction.
_ALWAYS_THERE = (
    "ALTER TABLE scheduler_run DROP CONSTRAINT IF EXISTS run_submission_known",
    "ALTER TABLE scheduler_run ADD CONSTRAINT run_submission_known CHECK (job_submitted_at IS NOT NULL) NOT VALID",
    "ALTER TABLE scheduler_run VALIDATE CONSTRAINT run_submission_known",
    "ALTER TABLE scheduler_run ALTER COLUMN job_submitted_at SET NOT NULL",
    "ALTER TABLE scheduler_run DROP CONSTRAINT run_submission_known",
)


def fill(apps: Any, schema_editor: Any) -> None:
    last = "00000000-0000-0000-0000-000000000000"
    while row := _fill_batch(schema_editor.connection, last):
        (last,) = row


def _fill_batch(connection: Any, after: object) -> Sequence[Any] | None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(_FILL, [after, BATCH])
        row: Sequence[Any] | None = cursor.fetchone()
        return row


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("scheduler", "0019_failures_of_nodes_as_one"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(_ADD, _REMOVE),
                migrations.RunSQL(_TELL, _TELL_NO_MORE),
                migrations.RunPython(fill, migrations.RunPython.noop),
                *(migrations.RunSQL(statement, migrations.RunSQL.noop) for statement in _ALWAYS_THERE),
            ],
            state_operations=[
                migrations.AddField(
                    "run", "job_submitted_at", models.DateTimeField(default=None), preserve_default=False
                )
            ],
        ),
    ]
