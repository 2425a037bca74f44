"""Totals for whoever watches Tack from outside, and since when what an executor says of its nodes has held.

A total is written with every batch of its worker: with half of each page free its next version lies beside the last.
"""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0005_whole_scheduling"),
    ]

    operations = [
        migrations.AddField(
            model_name="executor",
            name="nodes_changed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="Counter",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "metric",
                        "labels",
                        "shard",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("metric", models.CharField(max_length=32)),
                (
                    "labels",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list),
                ),
                ("shard", models.SmallIntegerField()),
                ("period", models.DateTimeField(null=True)),
                ("total", models.FloatField()),
            ],
            options={
                "indexes": [models.Index(fields=["period"], name="counter_by_period")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "metric__in",
                                [
                                    "decisions",
                                    "gang_skips",
                                    "failures_by_queue",
                                    "failures_by_node",
                                    "settle_times",
                                    "settle_seconds",
                                    "round_times",
                                    "round_seconds",
                                ],
                            )
                        ),
                        name="counter_metric_known",
                    )
                ],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE scheduler_counter SET (fillfactor = 50)",
            "ALTER TABLE scheduler_counter RESET (fillfactor)",
        ),
    ]
