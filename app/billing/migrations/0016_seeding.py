from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0015_rollups")]
    operations = [run("reserve.sql"), run("settle.sql")]
