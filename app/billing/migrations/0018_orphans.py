from django.db import migrations, models
from django.db.models import Q

from app.billing.migrations._sql import run


class Migration(migrations.Migration):
    """The sweeper also writes down calls of which nothing was seen; those of before stay as they are."""

    dependencies = [("billing", "0017_sent_calls")]
    operations = [
        migrations.RunSQL(
            "UPDATE billing_reservation SET settled_at = ended_at, settled_by = 'sweeper', price = 0, input_tokens = 0, "
            "output_tokens = 0 WHERE state = 'expired' AND settled_at IS NULL AND seen_input_tokens = 0 "
            "AND seen_output_tokens = 0",
            migrations.RunSQL.noop,
        ),
        migrations.RemoveIndex(model_name="reservation", name="billing_reservation_owed"),
        migrations.AddIndex(
            model_name="reservation",
            index=models.Index(
                fields=["id"],
                condition=Q(state="expired", settled_at__isnull=True),
                name="billing_reservation_owed",
            ),
        ),
        run("settle.sql"),
    ]
