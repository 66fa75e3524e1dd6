from decimal import Decimal

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The limits of a new installation, in force before the first call whatever starts it."""
    budget = apps.get_model("billing", "Budget")
    common = {"unit": "money", "period": "month", "zone": settings.INSTALLATION_ZONE, "set_by": "setup"}
    budget.objects.create(
        scope="installation", subject="i", name="this installation", limit=Decimal(100), alert_ratios=["0.5", "0.8", "1"], **common
    )
    budget.objects.create(scope="allowance", subject="a:*:*", name="your allowance", limit=Decimal(10), alert_ratios=["0.8", "1"], **common)


class Migration(migrations.Migration):
    dependencies = [("billing", "0002_functions")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
