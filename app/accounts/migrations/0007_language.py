from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_providers")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="language",
            field=models.CharField(blank=True, max_length=10),
        ),
    ]
