"""Retention notes before which moment jobs may be gone, and counts what it removes."""

from datetime import UTC, datetime

from django.db import migrations, models

# Before the end of the first job that is left there may have been others.
_WHERE_IT_HAS_BEEN = """
    UPDATE scheduler_historymark
       SET jobs_until = least(closed_until, coalesce((SELECT min(recorded_at) FROM scheduler_job), closed_until))
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0023_lists_of_runs_in_their_order"),
    ]

    operations = [
        migrations.AddField(
            "historymark", "jobs_until", models.DateTimeField(default=datetime(1970, 1, 1, tzinfo=UTC))
        ),
        migrations.RunSQL(_WHERE_IT_HAS_BEEN, migrations.RunSQL.noop),
        migrations.RemoveConstraint("counter", "counter_metric_known"),
        migrations.AddConstraint(
            "counter",
            models.CheckConstraint(
                name="counter_metric_known",
                condition=models.Q(
                    metric__in=[
                        "decisions",
                        "gang_skips",
                        "removed",
                        "failures_by_queue",
                        "failures_by_node",
                        "settle_times",
                        "settle_seconds",
                        "round_times",
                        "round_seconds",
                    ]
                ),
            ),
        ),
    ]
