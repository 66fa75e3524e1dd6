from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0010_reader")]

    operations = [
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "-updated_at"], name="document_changed"),
        ),
    ]
