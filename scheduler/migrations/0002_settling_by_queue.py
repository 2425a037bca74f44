"""Each run names its queue, so that what there is to settle of a queue is found by an index."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

QUEUE: dict[str, Any] = {
    "to": "scheduler.queue",
    "on_delete": django.db.models.deletion.DO_NOTHING,
    "related_name": "+",
    "db_index": False,
    "db_constraint": False,
}


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0001_initial")]

    operations = [
        migrations.RemoveIndex("run", name="run_unsettled"),
        migrations.AddField("run", "queue", models.ForeignKey(null=True, **QUEUE)),
        migrations.RunSQL(
            "UPDATE scheduler_run r SET queue_id = j.queue_id FROM scheduler_job j WHERE j.id = r.job_id",
            migrations.RunSQL.noop,
        ),
        migrations.AlterField("run", "queue", models.ForeignKey(**QUEUE)),
        migrations.AddIndex(
            "run",
            models.Index(
                models.F("queue"),
                models.F("ended_at"),
                models.F("job"),
                name="run_unsettled_of_queue",
                condition=models.Q(ended_at__isnull=False, settled_at__isnull=True, settle_error=""),
            ),
        ),
    ]
