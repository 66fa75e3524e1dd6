from pathlib import Path

import app.common.clock
import app.common.models
import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / 'sql'


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_language'),
        ('api', '0001_initial'),
        ('chat', '0011_matches'),
        ('retrieval', '0011_document_changed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='JobWebhook',
            fields=[
                ('id', models.UUIDField(default=app.common.models.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=app.common.clock.now, editable=False)),
                ('name', models.CharField(max_length=100)),
                ('url', models.CharField(max_length=500)),
                ('secret', models.TextField(editable=False)),
                ('open', models.BooleanField(default=False)),
                ('paused_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('delivered', models.PositiveBigIntegerField(default=0)),
                ('last_delivered_at', models.DateTimeField(null=True)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('document.ready', 'Document Ready'), ('document.failed', 'Document Failed'), ('turn.finished', 'Turn Finished'), ('turn.failed', 'Turn Failed'), ('export.ready', 'Export Ready'), ('export.failed', 'Export Failed')], max_length=30), size=None)),
                ('last_event_id', models.UUIDField(null=True)),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='JobDelivery',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField()),
                ('state', models.CharField(max_length=10)),
                ('attempts', models.PositiveIntegerField(db_default=0, default=0)),
                ('next_at', models.DateTimeField()),
                ('last_status', models.PositiveIntegerField(null=True)),
                ('last_error', models.CharField(blank=True, db_default='', default='', max_length=300)),
                ('event_id', models.UUIDField()),
                ('type', models.CharField(max_length=30)),
                ('data', models.JSONField()),
                ('webhook', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='api.jobwebhook')),
            ],
            options={
                'verbose_name_plural': 'job deliveries',
            },
        ),
        migrations.AddConstraint(
            model_name='jobwebhook',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('team__isnull', False), ('user', None)), models.Q(('team', None), ('user__isnull', False)), _connector='OR'), name='api_job_webhook_one_owner'),
        ),
        migrations.AddIndex(
            model_name='jobdelivery',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['webhook', 'id'], name='api_job_due'),
        ),
        migrations.AddIndex(
            model_name='jobdelivery',
            index=models.Index(fields=['event_id'], name='api_job_event'),
        ),
        migrations.AddConstraint(
            model_name='jobdelivery',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'dead'])), name='api_job_state'),
        ),
        migrations.RunSQL((SQL / 'jobs.sql').read_text(), migrations.RunSQL.noop),
    ]
