from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]
    operations = [run(name) for name in ("windows.sql", "rates.sql", "reserve.sql", "settle.sql", "guards.sql", "grants.sql")]
