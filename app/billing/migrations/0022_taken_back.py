from django.db import migrations

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    dependencies = [("billing", "0021_alerts_again")]
    operations = [run("reserve.sql"), run("grants.sql")]
