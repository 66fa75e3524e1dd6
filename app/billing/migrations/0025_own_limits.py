from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    """A hold that waited while an own limit took the place of a default asks again."""

    dependencies = (("billing", "0024_plain_expressions"),)

    operations = (run("reserve.sql"),)
