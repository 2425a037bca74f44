"""An index that tells of active jobs all that totals need."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0011_annotations_are_found"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)),
                fields=["queue", "state"],
                include=("state_changed_at",),
                name="job_active",
            ),
        ),
    ]
