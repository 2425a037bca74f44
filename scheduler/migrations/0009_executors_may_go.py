import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0008_history")]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="executor",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="runs",
                to="scheduler.executor",
            ),
        ),
    ]
