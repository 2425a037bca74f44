"""Retention notes before which moment jobs may be gone, so that statistics take whole what is only rolled up there."""

from datetime import UTC, datetime

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0023_lists_of_runs_in_their_order"),
    ]

    operations = [
        migrations.AddField(
            "historymark", "jobs_until", models.DateTimeField(default=datetime(1970, 1, 1, tzinfo=UTC))
        ),
    ]
