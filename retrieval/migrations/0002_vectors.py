from pathlib import Path

import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models

SQL = Path(__file__).resolve().parents[1] / "sql"

# Vectors move out of the chunks; the index of the space in use is built anew over their table.
_MOVE = """
ALTER TABLE retrieval_chunkvector ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE retrieval_chunkvector ADD CONSTRAINT vector_of_chunk
    FOREIGN KEY (chunk_id) REFERENCES retrieval_chunk (id) ON DELETE CASCADE;
INSERT INTO retrieval_chunkvector (chunk_id, space_id, team_id, collection_id, document_id, embedding)
    SELECT id, space_id, team_id, collection_id, document_id, embedding FROM retrieval_chunk
    WHERE embedding IS NOT NULL;
SET CONSTRAINTS ALL IMMEDIATE;
"""
_INDEX = "SELECT retrieval_space_index(id, dimension) FROM retrieval_embeddingspace WHERE state = 'active'"


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="embeddingspace",
            name="state",
            field=models.CharField(
                choices=[
                    ("building", "Building"),
                    ("active", "Active"),
                    ("standby", "Standby"),
                    ("retired", "Retired"),
                ],
                default="building",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="ChunkVector",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "chunk_id", "space_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("team_id", models.UUIDField()),
                ("collection_id", models.UUIDField()),
                ("document_id", models.UUIDField()),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
                (
                    "chunk",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="vectors",
                        to="retrieval.chunk",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="retrieval.embeddingspace",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["space", "collection_id"], name="vector_reach")]},
        ),
        migrations.RunSQL(_MOVE, migrations.RunSQL.noop),
        migrations.RemoveField(model_name="chunk", name="embedding"),
        migrations.RemoveField(model_name="chunk", name="space"),
        migrations.RunSQL((SQL / "space_index.sql").read_text(), migrations.RunSQL.noop),
        migrations.RunSQL(_INDEX, migrations.RunSQL.noop),
    ]
