from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0011_alert_channels")]
    operations = [
        # What servers count is kept by the catalog.
        migrations.DeleteModel(name="CounterSample"),
        run("statements.sql"),
        run("grants.sql"),
        migrations.RunSQL("DROP FUNCTION IF EXISTS billing_half_even(numeric, integer)", migrations.RunSQL.noop),
    ]
