from django.db import migrations, models

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0008_rate_limits")]
    operations = [
        migrations.AddField("usageattempt", "queue_ms", models.IntegerField(null=True)),
        migrations.AddField("usageattempt", "itl_ms", models.FloatField(null=True)),
        migrations.AddField("usageattempt", "prompt_facts", models.JSONField(null=True)),
        run("settle.sql"),
    ]
