"""Collections, who may use them, and the receipts for what was taken out of them."""

from django.db import models
from django.db.models.functions import Lower

from retrieval.models.base import Row


class Level(models.TextChoices):
    PUBLIC = "public"
    INTERNAL = "internal"
    PRIVATE = "private"


LEVELS = tuple(Level.values)
"""Least private first."""


class Collection(Row):
    """Documents that are searched, shared and paid for together. Private to its owner team by default."""

    class Kind(models.TextChoices):
        LIBRARY = "library"
        CONVERSATION = "conversation"

    team_id = models.UUIDField(db_index=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.LIBRARY)
    level = models.CharField(max_length=16, choices=Level, default=Level.INTERNAL)
    created_by = models.CharField(max_length=64)
    """Principal of the creator."""
    chunk_count = models.PositiveBigIntegerField(default=0)
    """Kept by the commit of a version, so that search can choose its plan without counting."""
    chunking = models.JSONField(default=dict, blank=True)
    """Sizes that differ from `retrieval.chunking.Settings`; they count for what is read from then on."""
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("team_id", Lower("name"), name="collection_name_once_a_team"),
            models.CheckConstraint(condition=models.Q(level__in=LEVELS), name="collection_level_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Grant(Row):
    """One principal may use one collection up to a verb; a stronger verb includes the weaker ones."""

    class Verb(models.TextChoices):
        READ = "read"
        WRITE = "write"
        MANAGE = "manage"

    team_id = models.UUIDField()
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="grants")
    principal = models.CharField(max_length=64)
    verb = models.CharField(max_length=8, choices=Verb)
    created_by = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["principal", "collection"], name="grant_once"),
            models.CheckConstraint(
                condition=models.Q(verb__in=("read", "write", "manage")), name="grant_verb_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.principal} may {self.verb}"


class Receipt(Row):
    """What a removal or an erasure took away: its number, date and hashes stay when the content is gone."""

    class Kind(models.TextChoices):
        REMOVED = "removed"
        ERASED = "erased"

    number = models.CharField(max_length=32, unique=True)
    kind = models.CharField(max_length=8, choices=Kind)
    team_id = models.UUIDField(db_index=True)
    collection_id = models.UUIDField()
    document_id = models.UUIDField(null=True, db_index=True)
    """Null when a whole collection went."""
    hashes = models.JSONField(default=list)
    """SHA-256 of the originals."""
    counts = models.JSONField(default=dict)
    done_by = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(fields=["collection_id", "-created_at"], name="receipt_latest")]

    def __str__(self) -> str:
        return self.number
