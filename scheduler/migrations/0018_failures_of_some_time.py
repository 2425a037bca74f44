"""The index of ended runs tells their states: who looks for failures of some time reads no other run."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("scheduler", "0017_days_are_added_up"),
    ]

    operations = [
        RemoveIndexConcurrently("run", "run_by_end"),
        AddIndexConcurrently(
            "run",
            models.Index(
                models.F("recorded_at"),
                models.F("state"),
                condition=models.Q(("recorded_at__isnull", False)),
                name="run_by_end",
            ),
        ),
    ]
