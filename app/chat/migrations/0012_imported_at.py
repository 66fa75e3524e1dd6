from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0011_matches'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='imported_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
