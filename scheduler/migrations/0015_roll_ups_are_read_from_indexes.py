"""The index of a roll-up has its counts beside the key, so that what is asked of it is read from the index alone.

That takes pages known to be seen by everybody: the tables are looked through when a twentieth of them is new, not a fifth.
"""

from django.db import migrations, models

_TABLES = ("failurehour", "failureday", "nodefailureday", "retryhour")
_SOON = ("autovacuum_vacuum_scale_factor", "autovacuum_vacuum_insert_scale_factor")
_SET = "; ".join(
    f"ALTER TABLE scheduler_{table} SET ({', '.join(f'{name} = 0.05' for name in _SOON)})"
    for table in _TABLES
)
_RESET = "; ".join(f"ALTER TABLE scheduler_{table} RESET ({', '.join(_SOON)})" for table in _TABLES)


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0014_last_runs_of_earlier_jobs"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="failureday",
            name="failure_day_once",
        ),
        migrations.RemoveConstraint(
            model_name="failurehour",
            name="failure_hour_once",
        ),
        migrations.RemoveConstraint(
            model_name="nodefailureday",
            name="node_failure_day_once",
        ),
        migrations.RemoveConstraint(
            model_name="retryhour",
            name="retry_hour_once",
        ),
        migrations.AddConstraint(
            model_name="failureday",
            constraint=models.UniqueConstraint(
                fields=("day", "category", "subcategory"),
                include=("failures", "core_seconds"),
                name="failure_day_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="failurehour",
            constraint=models.UniqueConstraint(
                fields=("hour", "queue", "category"),
                include=("failures", "core_seconds"),
                name="failure_hour_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="nodefailureday",
            constraint=models.UniqueConstraint(
                fields=("day", "pool", "executor", "node", "category"),
                include=("failures", "core_seconds"),
                name="node_failure_day_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="retryhour",
            constraint=models.UniqueConstraint(
                fields=("hour", "policy", "rule", "verdict", "outcome", "after"),
                include=("times", "core_seconds"),
                name="retry_hour_once",
                nulls_distinct=False,
            ),
        ),
        migrations.RunSQL(_SET, _RESET),
    ]
