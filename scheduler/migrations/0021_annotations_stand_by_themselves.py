"""Annotations stand in a table of their own, which leads from a value, or the beginning of one, to jobs in their order.

The database keeps it with the jobs, whoever writes them. It is written once for each job, where an index of the jobs' own
was written with each of their changes. Jobs from before follow in the next migration.
"""

from django.db import migrations, models

_KEEP = """
    CREATE OR REPLACE FUNCTION scheduler_jobs_came() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO scheduler_jobannotation (key, value, job_submitted_at, job_id)
        SELECT a.key, left(coalesce(a.value, ''), 200), job.submitted_at, job.id
          FROM came AS job CROSS JOIN LATERAL jsonb_each_text(job.annotations) AS a;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE FUNCTION scheduler_jobs_went() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM scheduler_jobannotation AS gone
         USING went AS job CROSS JOIN LATERAL jsonb_each_text(job.annotations) AS a
         WHERE gone.key = a.key AND gone.value = left(coalesce(a.value, ''), 200)
           AND gone.job_submitted_at = job.submitted_at AND gone.job_id = job.id;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE FUNCTION scheduler_job_annotated_anew() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM scheduler_jobannotation AS gone USING jsonb_each_text(OLD.annotations) AS a
         WHERE gone.key = a.key AND gone.value = left(coalesce(a.value, ''), 200)
           AND gone.job_submitted_at = OLD.submitted_at AND gone.job_id = OLD.id;
        INSERT INTO scheduler_jobannotation (key, value, job_submitted_at, job_id)
        SELECT a.key, left(coalesce(a.value, ''), 200), NEW.submitted_at, NEW.id FROM jsonb_each_text(NEW.annotations) AS a;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER job_annotations_come AFTER INSERT ON scheduler_job
        REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION scheduler_jobs_came();
    CREATE OR REPLACE TRIGGER job_annotations_go AFTER DELETE ON scheduler_job
        REFERENCING OLD TABLE AS went FOR EACH STATEMENT EXECUTE FUNCTION scheduler_jobs_went();
    CREATE OR REPLACE TRIGGER job_annotations_change AFTER UPDATE OF annotations, submitted_at ON scheduler_job
        FOR EACH ROW WHEN (OLD.annotations IS DISTINCT FROM NEW.annotations OR OLD.submitted_at <> NEW.submitted_at)
        EXECUTE FUNCTION scheduler_job_annotated_anew();
"""
_FORGET = """
    DROP TRIGGER job_annotations_change ON scheduler_job;
    DROP TRIGGER job_annotations_go ON scheduler_job;
    DROP TRIGGER job_annotations_come ON scheduler_job;
    DROP FUNCTION scheduler_job_annotated_anew();
    DROP FUNCTION scheduler_jobs_went();
    DROP FUNCTION scheduler_jobs_came();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0020_runs_know_their_jobs_submission"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobAnnotation",
            fields=[
                ("pk", models.CompositePrimaryKey("key", "value", "job_submitted_at", "job_id", blank=True, editable=False, primary_key=True, serialize=False)),
                ("key", models.CharField(db_collation="C", max_length=317)),
                ("value", models.CharField(db_collation="C", max_length=200)),
                ("job_submitted_at", models.DateTimeField()),
                ("job", models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.DO_NOTHING, related_name="+", to="scheduler.job")),
            ],
        ),
        migrations.RunSQL(_KEEP, _FORGET),
    ]  # fmt: skip
