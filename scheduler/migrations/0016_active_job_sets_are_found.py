"""The index of active jobs tells their job sets as well. It is made without holding up writers."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("scheduler", "0015_roll_ups_are_read_from_indexes"),
    ]

    operations = [
        RemoveIndexConcurrently("job", "job_active"),
        AddIndexConcurrently(
            "job",
            models.Index(
                condition=models.Q(("ended_at__isnull", True)),
                fields=["queue", "state"],
                include=("state_changed_at", "job_set"),
                name="job_active",
            ),
        ),
    ]
