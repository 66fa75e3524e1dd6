"""Rows of the keyword leg, kept by `retrieval/sql/words.sql`. References are plain ids: the database follows chunks."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from pgvector.django import SparseVectorField

TERMS = 1_000_000_000
"""Numbers that a word can have: the most dimensions a sparse vector may have."""


class ChunkWords(models.Model):
    """The words of a chunk and their BM25 weights. Beside the chunk: a keyword search reads no text and no vector."""

    chunk_id = models.UUIDField(primary_key=True)
    collection_id = models.UUIDField()
    document_id = models.UUIDField()
    configuration = models.CharField(max_length=20)
    """Text search configuration that its words were reduced to stems with."""
    length = models.PositiveIntegerField()
    """Words, each as often as it occurs."""
    terms = ArrayField(models.IntegerField())
    weights = SparseVectorField(dimensions=TERMS)

    class Meta:
        indexes = [
            models.Index(fields=["collection_id"], name="words_reach"),
            GinIndex(fields=["terms"], name="words_terms", gin_pending_list_limit=1024),
        ]

    def __str__(self) -> str:
        return f"words of {self.chunk_id}"


class WordCount(models.Model):
    """How many chunks of a collection hold a word; terms from 0 down are totals (see words.sql)."""

    pk = models.CompositePrimaryKey("term", "collection_id")
    term = models.IntegerField()
    collection_id = models.UUIDField()
    chunks = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["collection_id"], condition=models.Q(chunks=0), name="words_gone"),
        ]

    def __str__(self) -> str:
        return f"word {self.term} of {self.collection_id}"


class WordDelta(models.Model):
    """A difference to a WordCount that is not joined to it yet: writers append, so that none waits for another."""

    term = models.IntegerField()
    collection_id = models.UUIDField()
    difference = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["term", "collection_id"], name="words_delta")]

    def __str__(self) -> str:
        return f"{self.difference:+} of word {self.term} of {self.collection_id}"
