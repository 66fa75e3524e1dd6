from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='cost_centre',
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AddField(
            model_name='team',
            name='cost_centre',
            field=models.CharField(blank=True, max_length=60),
        ),
    ]
