"""Vectors of chunks, and the spaces in which they can be compared."""

from django.db import models
from pgvector.django import HalfVectorField

from retrieval.models.base import Row
from retrieval.models.documents import Chunk, Document


class EmbeddingSpace(Row):
    """One model at one dimension in one generation: only vectors of the same space are comparable."""

    class State(models.TextChoices):
        BUILDING = "building"
        ACTIVE = "active"
        STANDBY = "standby"
        """Searched before; its vectors are kept, so that going back is quick."""
        RETIRED = "retired"

    model = models.CharField(max_length=200)
    dimension = models.PositiveIntegerField()
    generation = models.PositiveIntegerField(default=1)
    query_prefix = models.CharField(max_length=200, blank=True, default="")
    passage_prefix = models.CharField(max_length=200, blank=True, default="")
    min_similarity = models.FloatField(null=True, blank=True)
    """Below it a passage is noise. Null: not measured for this model, the built-in default counts."""
    state = models.CharField(max_length=16, choices=State, default=State.BUILDING)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "dimension", "generation"], name="space_once"),
            models.UniqueConstraint(
                fields=["state"], condition=models.Q(state="active"), name="space_one_active"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model}/{self.dimension} #{self.generation}"


class ChunkVector(models.Model):
    """A chunk's vector in one space, with unit length, so that the inner product is the cosine.

    Beside the chunk and not in it: another model's vectors are built and dropped without touching a row that is
    searched, and an exact scan reads vectors only. The database removes it with its chunk (ON DELETE CASCADE).
    """

    pk = models.CompositePrimaryKey("chunk_id", "space_id")
    chunk = models.ForeignKey(
        Chunk, on_delete=models.DO_NOTHING, related_name="vectors", db_constraint=False, db_index=False
    )
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, db_index=False)
    team_id = models.UUIDField()
    collection_id = models.UUIDField()
    document_id = models.UUIDField()
    # No dimension on purpose: spaces of different dimensions live side by side in one column.
    embedding = HalfVectorField()
    indexed = models.BooleanField(db_default=False)
    """Whether the approximate index holds it. Entering one costs ten times what storing it does, so a commit stores
    and `retrieval_vectors_fold` enters; until then search compares it by itself."""

    class Meta:
        indexes = [
            models.Index(fields=["space", "collection_id"], name="vector_reach"),
            models.Index(
                fields=["space", "collection_id"], condition=models.Q(indexed=False), name="vector_fresh"
            ),
        ]

    def __str__(self) -> str:
        return f"vector of {self.chunk_id}"


class EmbeddingDraft(Row):
    """A vector bought for a version that is not committed yet, so that a killed job never pays twice."""

    team_id = models.UUIDField()
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="drafts")
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.CASCADE)
    content_hash = models.BinaryField(max_length=32)
    embedding = HalfVectorField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "space", "content_hash"], name="draft_once"),
        ]

    def __str__(self) -> str:
        return f"draft for {self.document_id}"
