from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    """Holding and settling call their helpers as expressions, which cost the database less than queries."""

    dependencies = (("billing", "0023_zone_changed"),)

    operations = (
        run("rates.sql"),
        run("reserve.sql"),
        run("settle.sql"),
        run("entries.sql"),
        run("grants.sql"),
    )
