"""Jobs know where they ran last and what they failed of last.

Where they ran is written with the lease. Failures are noted by the database when a run's failure reaches it, in the same
transaction, and when a job ends by a failure of its own: whoever writes them. Jobs from before follow in the next migration.
"""

from django.db import migrations, models

_NOTE_FAILURES = """
    CREATE FUNCTION scheduler_run_failed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE scheduler_job AS j
           SET last_category = NEW.category, last_subcategory = NEW.subcategory
         WHERE j.id = NEW.job_id
           AND (j.last_category, j.last_subcategory) IS DISTINCT FROM (NEW.category, NEW.subcategory)
           AND (j.run_count <= NEW.number
                OR NOT EXISTS (SELECT FROM scheduler_run r WHERE r.job_id = NEW.job_id AND r.number > NEW.number
                                                             AND r.state IN ('failed', 'lease_expired')));
        RETURN NULL;
    END $$;
    CREATE TRIGGER run_failed_on_insert AFTER INSERT ON scheduler_run
        FOR EACH ROW WHEN (NEW.state IN ('failed', 'lease_expired')) EXECUTE FUNCTION scheduler_run_failed();
    CREATE TRIGGER run_failed_on_update AFTER UPDATE ON scheduler_run
        FOR EACH ROW WHEN (NEW.state IN ('failed', 'lease_expired') AND OLD.state <> NEW.state)
        EXECUTE FUNCTION scheduler_run_failed();

    CREATE FUNCTION scheduler_job_own_failure() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.state = 'rejected' THEN
            NEW.last_category := 'internal';
            NEW.last_subcategory := 'job-rejected';
        ELSIF EXISTS (SELECT FROM scheduler_run r
                       WHERE r.job_id = NEW.id AND r.number = NEW.run_count AND r.state = 'lease_returned') THEN
            NEW.last_category := 'internal';
            NEW.last_subcategory := 'max-runs-exceeded';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER job_own_failure_on_insert BEFORE INSERT ON scheduler_job
        FOR EACH ROW WHEN (NEW.state = 'rejected') EXECUTE FUNCTION scheduler_job_own_failure();
    CREATE TRIGGER job_own_failure_on_update BEFORE UPDATE ON scheduler_job
        FOR EACH ROW WHEN (NEW.state IN ('failed', 'rejected') AND OLD.state <> NEW.state)
        EXECUTE FUNCTION scheduler_job_own_failure();
"""
_FORGET = """
    DROP TRIGGER job_own_failure_on_update ON scheduler_job;
    DROP TRIGGER job_own_failure_on_insert ON scheduler_job;
    DROP FUNCTION scheduler_job_own_failure();
    DROP TRIGGER run_failed_on_update ON scheduler_run;
    DROP TRIGGER run_failed_on_insert ON scheduler_run;
    DROP FUNCTION scheduler_run_failed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0012_active_jobs_are_counted"),
    ]

    operations = [
        migrations.AddField("job", "last_executor", models.CharField(max_length=253, null=True)),
        migrations.AddField("job", "last_node", models.CharField(max_length=253, null=True)),
        migrations.AddField("job", "last_pool", models.CharField(max_length=63, null=True)),
        migrations.AddField("job", "last_category", models.CharField(max_length=63, null=True)),
        migrations.AddField("job", "last_subcategory", models.CharField(max_length=63, null=True)),
        migrations.RunSQL(_NOTE_FAILURES, _FORGET),
    ]
