from django.db import migrations

# A search weighs its words by some hundred counts of each, which lie all over the table: the index holds them too, so
# that it alone is read. Built beside the old one, since millions of rows take a minute; from the beginning again where it
# was broken off.
_REPLACED = (
    "DROP INDEX CONCURRENTLY IF EXISTS words_covered",
    "CREATE UNIQUE INDEX CONCURRENTLY words_covered ON retrieval_wordcount (term, collection_id){include}",
    "ALTER TABLE retrieval_wordcount DROP CONSTRAINT retrieval_wordcount_pkey,"
    " ADD CONSTRAINT retrieval_wordcount_pkey PRIMARY KEY USING INDEX words_covered",
)


def _by(include: str) -> list[str]:
    return [statement.format(include=include) for statement in _REPLACED]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("retrieval", "0012_receipt_latest")]

    operations = [migrations.RunSQL(_by(" INCLUDE (chunks)"), _by(""))]
