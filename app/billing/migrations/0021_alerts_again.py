from django.db import migrations, models

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    """Thresholds are told again once a limit was raised; a price in another currency is none."""

    dependencies = [("billing", "0020_busy_hours")]
    operations = [
        migrations.RemoveConstraint(model_name="budgetalert", name="billing_alert_once"),
        migrations.AddConstraint(
            model_name="budgetalert",
            constraint=models.UniqueConstraint(
                fields=["window", "ratio", "limit"], name="billing_alert_once"
            ),
        ),
        migrations.AddIndex(
            model_name="usageattempt",
            index=models.Index(
                fields=["reservation"], condition=~models.Q(flags=[]), name="billing_attempt_disputed"
            ),
        ),
        run("alerts.sql"),
        run("reserve.sql"),
    ]
