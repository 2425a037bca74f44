"""Failures by queue and retries are added up by the day as well as by the hour; the hours that are there make the days."""

from django.db import migrations, models

# Nobody closes an hour meanwhile.
_FILL = """
    SELECT FROM scheduler_historymark FOR UPDATE;
    INSERT INTO scheduler_queuefailureday (day, queue, category, failures, core_seconds)
    SELECT date_trunc('day', hour, 'UTC'), queue, category, sum(failures), sum(core_seconds)
      FROM scheduler_failurehour GROUP BY 1, 2, 3;
    INSERT INTO scheduler_retryday (day, policy, rule, verdict, outcome, after, times, core_seconds)
    SELECT date_trunc('day', hour, 'UTC'), policy, rule, verdict, outcome, after, sum(times), sum(core_seconds)
      FROM scheduler_retryhour GROUP BY 1, 2, 3, 4, 5, 6;
"""
_SOON = "(autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05)"
_SET = f"ALTER TABLE scheduler_queuefailureday SET {_SOON}; ALTER TABLE scheduler_retryday SET {_SOON}"


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0016_active_job_sets_are_found"),
    ]

    operations = [
        migrations.CreateModel(
            name="QueueFailureDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("queue", models.CharField(max_length=253)),
                ("category", models.CharField(blank=True, max_length=63)),
                ("failures", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
                ("day", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "queue", "category"),
                        include=("failures", "core_seconds"),
                        name="queue_failure_day_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetryDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("policy", models.CharField(max_length=63)),
                ("rule", models.IntegerField(null=True)),
                ("verdict", models.CharField(max_length=24)),
                ("outcome", models.CharField(blank=True, max_length=16)),
                ("after", models.PositiveIntegerField()),
                ("times", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
                ("day", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "policy", "rule", "verdict", "outcome", "after"),
                        include=("times", "core_seconds"),
                        name="retry_day_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        migrations.RunSQL(_SET, migrations.RunSQL.noop),
    ]
