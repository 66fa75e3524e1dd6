from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0022_taken_back")]
    operations = [run("reserve.sql")]
