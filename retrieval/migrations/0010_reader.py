from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0009_fresh_vectors")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="reader",
            field=models.CharField(blank=True, default="", max_length=40),
        ),
    ]
