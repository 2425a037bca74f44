"""Bells that wait are known, so that none is rung twice."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0002_settling_by_queue")]

    operations = [
        migrations.CreateModel(
            name="Bell",
            fields=[
                ("name", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("waits", models.BooleanField(default=False)),
            ],
        ),
    ]
