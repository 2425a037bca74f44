"""Failures are added up by node without their category, and by pool; the days by node and category make both."""

from django.db import migrations, models

# Nobody closes an hour meanwhile.
_FILL = """
    SELECT FROM scheduler_historymark FOR UPDATE;
    INSERT INTO scheduler_nodedaytotal (day, pool, executor, node, failures, core_seconds)
    SELECT day, pool, executor, node, sum(failures), sum(core_seconds)
      FROM scheduler_nodefailureday GROUP BY 1, 2, 3, 4;
    INSERT INTO scheduler_poolfailureday (day, pool, category, failures, core_seconds)
    SELECT day, pool, category, sum(failures), sum(core_seconds)
      FROM scheduler_nodefailureday GROUP BY 1, 2, 3;
"""
_SOON = "(autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05)"
_SET = f"ALTER TABLE scheduler_nodedaytotal SET {_SOON}; ALTER TABLE scheduler_poolfailureday SET {_SOON}"
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0018_failures_of_some_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="NodeDayTotal",
            fields=[
                ("id", _ID),
                ("day", models.DateTimeField()),
                ("pool", models.CharField(max_length=63)),
                ("executor", models.CharField(max_length=253)),
                ("node", models.CharField(max_length=253)),
                ("failures", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "pool", "executor", "node"),
                        include=("failures", "core_seconds"),
                        name="node_day_total_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PoolFailureDay",
            fields=[
                ("id", _ID.clone()),
                ("day", models.DateTimeField()),
                ("pool", models.CharField(max_length=63)),
                ("category", models.CharField(blank=True, max_length=63)),
                ("failures", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "pool", "category"),
                        include=("failures", "core_seconds"),
                        name="pool_failure_day_once",
                    )
                ],
            },
        ),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        migrations.RunSQL(_SET, migrations.RunSQL.noop),
    ]
