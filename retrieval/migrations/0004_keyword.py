from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import pgvector.django.sparsevec
from django.db import migrations, models


SQL = Path(__file__).resolve().parents[1] / 'sql'


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0003_erasing'),
    ]

    operations = [
        migrations.AddField(
            model_name='document',
            name='language',
            field=models.CharField(blank=True, default='', max_length=8),
        ),
        migrations.CreateModel(
            name='ChunkWords',
            fields=[
                ('chunk_id', models.UUIDField(primary_key=True, serialize=False)),
                ('collection_id', models.UUIDField()),
                ('document_id', models.UUIDField()),
                ('configuration', models.CharField(max_length=20)),
                ('length', models.PositiveIntegerField()),
                ('terms', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ('weights', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000)),
            ],
            options={
                'indexes': [models.Index(fields=['collection_id'], name='words_reach'), django.contrib.postgres.indexes.GinIndex(fields=['terms'], gin_pending_list_limit=1024, name='words_terms')],
            },
        ),
        migrations.CreateModel(
            name='WordCount',
            fields=[
                ('pk', models.CompositePrimaryKey('term', 'collection_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('term', models.IntegerField()),
                ('collection_id', models.UUIDField()),
                ('chunks', models.BigIntegerField()),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('chunks', 0)), fields=['collection_id'], name='words_gone')],
            },
        ),
        migrations.CreateModel(
            name='WordDelta',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('term', models.IntegerField()),
                ('collection_id', models.UUIDField()),
                ('difference', models.BigIntegerField()),
            ],
            options={
                'indexes': [models.Index(fields=['term', 'collection_id'], name='words_delta')],
            },
        ),
        migrations.RunSQL((SQL / 'words.sql').read_text(), (SQL / 'words_drop.sql').read_text()),
    ]
