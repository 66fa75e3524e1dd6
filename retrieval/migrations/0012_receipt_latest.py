from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0011_document_changed")]

    operations = [
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(fields=["collection_id", "-created_at"], name="receipt_latest"),
        ),
    ]
