from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0013_overshoot_alerts")]
    operations = [run("late.sql")]
