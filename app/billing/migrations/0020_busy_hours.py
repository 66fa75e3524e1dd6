from django.db import migrations, models

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0019_grains")]
    operations = [
        migrations.CreateModel(
            name="BusyHour",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("deployment_id", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("seconds", models.DecimalField(decimal_places=3, max_digits=7)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("deployment_id", "at"), name="billing_busyhour_once")
                ]
            },
        ),
        migrations.AddIndex(
            "ledgerentry",
            models.Index(
                fields=["deployment_id", "effective_at"],
                condition=models.Q(call_kind="provisioned"),
                name="billing_entry_hours",
            ),
        ),
        run("busy.sql"),
        run("grants.sql"),
    ]
