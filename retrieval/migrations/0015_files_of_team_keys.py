from django.db import migrations

# What a key of a team had attached to a conversation could be read by everybody in the team; it is for the team's keys.
_GIVEN = """
UPDATE retrieval_grant g SET principal = '{to}' || substr(g.principal, 6)
FROM retrieval_collection c
WHERE c.id = g.collection_id AND c.kind = 'conversation' AND g.principal LIKE '{of}%'
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0014_text_by_place")]
    operations = [
        migrations.RunSQL(_GIVEN.format(of="team:", to="keys:"), _GIVEN.format(of="keys:", to="team:")),
    ]
