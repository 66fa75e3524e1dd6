import app.common.clock
import app.common.models
import django.db.models.deletion
from django.db import migrations, models

from app.billing.migrations._sql import run


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0009_call_times'),
    ]

    operations = [
        migrations.CreateModel(
            name='CounterSample',
            fields=[
                ('id', models.UUIDField(default=app.common.models.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=app.common.clock.now, editable=False)),
                ('backend_id', models.UUIDField()),
                ('taken_at', models.DateTimeField()),
                ('input_tokens', models.BigIntegerField()),
                ('output_tokens', models.BigIntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('backend_id', 'taken_at'), name='billing_sample_once')],
            },
        ),
        migrations.CreateModel(
            name='Statement',
            fields=[
                ('id', models.UUIDField(default=app.common.models.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=app.common.clock.now, editable=False)),
                ('team_id', models.UUIDField(null=True)),
                ('team_name', models.CharField(max_length=200)),
                ('month', models.DateField()),
                ('zone', models.CharField(max_length=60)),
                ('starts_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('currency', models.CharField(max_length=3)),
                ('places', models.PositiveIntegerField()),
                ('state', models.CharField(default='draft', max_length=10)),
                ('number', models.PositiveIntegerField(null=True, unique=True)),
                ('issued_at', models.DateTimeField(null=True)),
                ('issued_by', models.CharField(blank=True, max_length=200)),
                ('exact', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('total', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('credit_opening', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('credit_used', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('missing', models.PositiveIntegerField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('team_id', 'month'), name='billing_statement_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('issued_at__isnull', True), ('number__isnull', True), ('state', 'draft')), models.Q(('issued_at__isnull', False), ('number__isnull', False), ('state', 'issued'), ('total__isnull', False)), _connector='OR'), name='billing_statement_state')],
            },
        ),
        migrations.CreateModel(
            name='StatementEntry',
            fields=[
                ('entry', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='statement_entry', serialize=False, to='billing.ledgerentry')),
                ('statement', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='statement_entries', to='billing.statement')),
            ],
        ),
        migrations.CreateModel(
            name='StatementLine',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('position', models.PositiveIntegerField()),
                ('section', models.CharField(max_length=12)),
                ('month', models.DateField(null=True)),
                ('cost_centre', models.CharField(blank=True, max_length=60)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('component', models.CharField(blank=True, max_length=400)),
                ('quantity', models.BigIntegerField(null=True)),
                ('unit_price', models.DecimalField(decimal_places=9, max_digits=18, null=True)),
                ('per_units', models.PositiveIntegerField(null=True)),
                ('min_prompt_tokens', models.PositiveBigIntegerField(null=True)),
                ('exact', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('estimated', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('amount', models.DecimalField(decimal_places=15, max_digits=28, null=True)),
                ('entries', models.PositiveIntegerField()),
                ('price_version', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.priceversion')),
                ('statement', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='billing.statement')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('statement', 'position'), name='billing_statement_line_once'), models.CheckConstraint(condition=models.Q(('section__in', ['charge', 'adjustment', 'credit', 'rounding'])), name='billing_statement_section')],
            },
        ),
        run('statements.sql'),
        run('grants.sql'),
    ]
