"""Roll-ups of what was recorded, totals of jobs that ended, and the marks up to which they reach.

When the end of a job reaches the database, the database notes it: the time is there whoever wrote the end.
"""

import datetime as dt
from django.db import migrations, models

_END_RECORDED = """
    UPDATE scheduler_job SET recorded_at = ended_at WHERE ended_at IS NOT NULL;
    CREATE FUNCTION scheduler_job_end_recorded() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.recorded_at := CASE WHEN NEW.ended_at IS NOT NULL THEN
            coalesce(CASE WHEN TG_OP = 'UPDATE' THEN OLD.recorded_at END, NEW.recorded_at, clock_timestamp()) END;
        RETURN NEW;
    END $$;
    CREATE TRIGGER job_end_recorded_on_insert BEFORE INSERT ON scheduler_job
        FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION scheduler_job_end_recorded();
    CREATE TRIGGER job_end_recorded_on_update BEFORE UPDATE ON scheduler_job
        FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL OR OLD.ended_at IS NOT NULL)
        EXECUTE FUNCTION scheduler_job_end_recorded();
"""
_FORGET = """
    DROP TRIGGER job_end_recorded_on_update ON scheduler_job;
    DROP TRIGGER job_end_recorded_on_insert ON scheduler_job;
    DROP FUNCTION scheduler_job_end_recorded();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0007_why_gangs_wait"),
    ]

    operations = [
        migrations.CreateModel(
            name="FailureDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateTimeField()),
                ("category", models.CharField(blank=True, max_length=63)),
                ("subcategory", models.CharField(blank=True, max_length=63)),
                ("failures", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="FailureHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("queue", models.CharField(max_length=253)),
                ("category", models.CharField(blank=True, max_length=63)),
                ("failures", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="HistoryMark",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                (
                    "closed_until",
                    models.DateTimeField(default=dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC)),
                ),
                (
                    "counted_until",
                    models.DateTimeField(default=dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC)),
                ),
                (
                    "outputs_until",
                    models.DateTimeField(default=dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC)),
                ),
                (
                    "client_ids_until",
                    models.DateTimeField(default=dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC)),
                ),
            ],
        ),
        migrations.CreateModel(
            name="JobTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("queue", models.CharField(max_length=253)),
                ("state", models.CharField(max_length=16)),
                ("jobs", models.BigIntegerField()),
                ("last_changed_at", models.DateTimeField()),
                ("changed_seconds", models.DecimalField(decimal_places=6, max_digits=40)),
                ("lasted_seconds", models.DecimalField(decimal_places=6, max_digits=40)),
            ],
        ),
        migrations.CreateModel(
            name="NodeFailureDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateTimeField()),
                ("pool", models.CharField(max_length=63)),
                ("executor", models.CharField(max_length=253)),
                ("node", models.CharField(max_length=253)),
                ("category", models.CharField(blank=True, max_length=63)),
                ("failures", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="RetryHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("policy", models.CharField(max_length=63)),
                ("rule", models.IntegerField(null=True)),
                ("verdict", models.CharField(max_length=24)),
                ("outcome", models.CharField(blank=True, max_length=16)),
                ("after", models.PositiveIntegerField()),
                ("times", models.BigIntegerField()),
                ("core_seconds", models.FloatField()),
            ],
        ),
        migrations.AddField(
            model_name="job",
            name="recorded_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunSQL(_END_RECORDED, _FORGET),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["-decided_at", "-run"], name="decision_newest"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                models.F("recorded_at"), condition=models.Q(("recorded_at__isnull", False)), name="job_by_end"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                models.F("recorded_at"), condition=models.Q(("recorded_at__isnull", False)), name="run_by_end"
            ),
        ),
        migrations.AddConstraint(
            model_name="failureday",
            constraint=models.UniqueConstraint(
                fields=("day", "category", "subcategory"), name="failure_day_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="failurehour",
            constraint=models.UniqueConstraint(
                fields=("hour", "queue", "category"), name="failure_hour_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="historymark",
            constraint=models.CheckConstraint(condition=models.Q(("id", 1)), name="one_history_mark"),
        ),
        migrations.AddConstraint(
            model_name="jobtotal",
            constraint=models.UniqueConstraint(fields=("queue", "state"), name="job_total_once"),
        ),
        migrations.AddConstraint(
            model_name="nodefailureday",
            constraint=models.UniqueConstraint(
                fields=("day", "pool", "executor", "node", "category"), name="node_failure_day_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="retryhour",
            constraint=models.UniqueConstraint(
                fields=("hour", "policy", "rule", "verdict", "outcome", "after"),
                name="retry_hour_once",
                nulls_distinct=False,
            ),
        ),
    ]
