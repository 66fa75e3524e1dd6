from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parents[1] / "sql"

# An index of everything in its space stays as it is: it serves the new queries too. Building a million vectors anew here
# would hold up every search; `manage.py vector_index_rebuild` does it while they go on.


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
    ]
