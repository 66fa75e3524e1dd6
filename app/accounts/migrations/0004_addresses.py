"""Whoever was here before addresses were confirmed keeps signing in: staff made those accounts."""

from django.db import migrations


def confirm(apps, schema_editor):
    User = apps.get_model("accounts", "User")
    EmailAddress = apps.get_model("account", "EmailAddress")
    rows = (
        EmailAddress(user_id=user_id, email=email.lower(), primary=True, verified=True)
        for user_id, email in User.objects.values_list("id", "email")
    )
    EmailAddress.objects.bulk_create(rows, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_key_networks"),
        ("account", "0009_emailaddress_unique_primary_email"),
    ]

    operations = [migrations.RunPython(confirm, migrations.RunPython.noop)]
