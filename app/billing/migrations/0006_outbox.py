import app.common.clock
import app.common.models
import django.db.models.deletion
from django.db import migrations, models

from app.billing.migrations._sql import run


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0005_limits'),
        ('accounts', '0002_cost_centre'),
    ]

    operations = [
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.UUIDField(default=app.common.models.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=app.common.clock.now, editable=False)),
                ('name', models.CharField(max_length=100)),
                ('url', models.CharField(max_length=500)),
                ('secret', models.TextField(editable=False)),
                ('team_id', models.UUIDField(blank=True, null=True)),
                ('open', models.BooleanField(default=False)),
                ('paused_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('delivered', models.PositiveBigIntegerField(default=0)),
                ('last_delivered_at', models.DateTimeField(null=True)),
                ('last_entry_id', models.UUIDField(null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='ledgerentry',
            name='cost_centre',
            field=models.CharField(blank=True, db_default='', default='', max_length=60),
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField()),
                ('state', models.CharField(max_length=10)),
                ('attempts', models.PositiveIntegerField(db_default=0, default=0)),
                ('next_at', models.DateTimeField()),
                ('last_status', models.PositiveIntegerField(null=True)),
                ('last_error', models.CharField(blank=True, db_default='', default='', max_length=300)),
                ('entry', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='billing.ledgerentry')),
                ('webhook', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='billing.webhook')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'indexes': [models.Index(condition=models.Q(('state', 'pending')), fields=['webhook', 'id'], name='billing_delivery_due')],
                'constraints': [models.UniqueConstraint(fields=('entry', 'webhook'), name='billing_delivery_once'), models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'dead'])), name='billing_delivery_state')],
            },
        ),
        run('entries.sql'),
        run('grants.sql'),
    ]
