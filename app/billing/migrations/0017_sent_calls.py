from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    """The sweeper also writes down calls that were sent and not seen to write."""

    dependencies = [("billing", "0016_seeding")]
    operations = [run("settle.sql")]
