"""Words of finished turns, by whoever asked: what finds a conversation again."""

from django.contrib.postgres.operations import BtreeGinExtension
from django.db import migrations

# Punctuation is taken out first, so that parts of addresses, paths and compounds are words of their own. What is indexed
# of a turn is bounded: a text of more than 1 MB of distinct words would be an error when its answer is stored.
WORDS = r"""
CREATE FUNCTION chat_words(question text, answer text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.to_tsvector('pg_catalog.simple'::pg_catalog.regconfig, pg_catalog.translate(
    pg_catalog.left(question, 60000) || ' ' || pg_catalog.left(answer, 60000),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', pg_catalog.repeat(' ', 32)))
$$;
CREATE INDEX chat_turn_words ON chat_turn USING gin (asked_by_id, chat_words(question, answer))
WHERE state <> 'running' AND conversation_id IS NOT NULL;
"""
GONE = "DROP INDEX chat_turn_words; DROP FUNCTION chat_words(text, text);"


class Migration(migrations.Migration):
    dependencies = [("chat", "0005_turn_timing")]

    operations = [
        BtreeGinExtension(),
        migrations.RunSQL(WORDS, GONE),
    ]
