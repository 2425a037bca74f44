"""Indexes for the questions people ask the history, each with its question at the model; see `tack bench history`."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0009_executors_may_go"),
    ]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="job_set",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="jobs",
                to="scheduler.jobset",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                models.F("queue"),
                models.F("state"),
                models.OrderBy(models.F("submitted_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="job_by_queue_and_state",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                models.F("job_set"),
                models.OrderBy(models.F("submitted_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="job_by_job_set",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                models.F("owner"),
                models.OrderBy(models.F("submitted_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="job_by_owner",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                models.OrderBy(models.F("state_changed_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="job_by_change",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                models.F("fingerprint"),
                models.OrderBy(models.F("ended_at"), descending=True),
                condition=models.Q(("fingerprint", ""), _negated=True),
                name="run_by_kind",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["node", "state"], include=("job", "number"), name="run_by_node"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                models.F("queue"),
                models.F("ended_at"),
                models.F("id"),
                condition=models.Q(("state__in", ["failed", "lease_expired"])),
                name="run_failed_of_queue",
            ),
        ),
    ]
