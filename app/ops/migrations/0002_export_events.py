from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / 'sql'


class Migration(migrations.Migration):

    dependencies = [
        ('api', '0002_job_webhooks'),
        ('ops', '0001_leaving'),
    ]

    operations = [
        migrations.RunSQL((SQL / 'exports.sql').read_text(), migrations.RunSQL.noop),
    ]
