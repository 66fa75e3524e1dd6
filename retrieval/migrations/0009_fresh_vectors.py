from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parents[1] / "sql"

# What is stored is in an index already, of everything in its space; from now on the index is of what is marked.
_INDEX_ANEW = """
DO $$
DECLARE
    space record;
BEGIN
    FOR space IN SELECT id, dimension FROM retrieval_embeddingspace WHERE state <> 'retired' LOOP
        EXECUTE format('DROP INDEX IF EXISTS %I', 'retrieval_vector_hnsw_' || replace(space.id::text, '-', ''));
        PERFORM retrieval_space_index(space.id, space.dimension);
    END LOOP;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0008_described")]

    operations = [
        # True for the rows that are there, without touching one of them; false for those to come.
        migrations.AddField(
            model_name="chunkvector",
            name="indexed",
            field=models.BooleanField(db_default=True),
        ),
        migrations.AlterField(
            model_name="chunkvector",
            name="indexed",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddIndex(
            model_name="chunkvector",
            index=models.Index(
                condition=models.Q(("indexed", False)),
                fields=["space", "collection_id"],
                name="vector_fresh",
            ),
        ),
        migrations.RunSQL((SQL / "space_index.sql").read_text(), migrations.RunSQL.noop),
        migrations.RunSQL(_INDEX_ANEW, migrations.RunSQL.noop),
    ]
