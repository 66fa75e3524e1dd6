"""Rows of the retrieval tier. References upward (teams, people) are plain uuids and principals."""

from django.db import models
from django.db.models.functions import Lower
from pgvector.django import HalfVectorField
from uuid_utils.compat import uuid7

# Django finds the rows of an app through this module.
from retrieval.word_models import ChunkWords, WordCount, WordDelta  # noqa: F401

LEVELS = ("public", "internal", "private")


class Row(models.Model):
    """Base of every row: a time-ordered key, so that indexes grow at one end."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class Level(models.TextChoices):
    PUBLIC = "public"
    INTERNAL = "internal"
    PRIVATE = "private"


class Status(models.TextChoices):
    QUEUED = "queued"
    PARSING = "parsing"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


WORKING = (Status.PARSING, Status.CHUNKING, Status.EMBEDDING)
"""States in which some worker holds the lease."""


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


class Document(Row):
    """A file somebody put in. The row is also its ingestion job: whoever holds the lease works on it.

    `version` counts uploads; `serving_version` is the one search sees (0: none yet). The old version
    serves until the new one is committed, and goes on serving when the new one fails.
    """

    team_id = models.UUIDField(db_index=True)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents")
    name = models.CharField(max_length=500)
    title = models.CharField(max_length=500, blank=True, default="")
    """From the file itself, where it has one."""
    sha256 = models.CharField(max_length=64, blank=True, default="", db_index=True)
    """Empty while what lies at `source_url` has not been fetched."""
    serving_sha256 = models.CharField(max_length=64, blank=True, default="", db_index=True)
    size = models.PositiveBigIntegerField()
    mime = models.CharField(max_length=100, blank=True, default="")
    """What the content is, not what the name says. Empty until it was looked at."""
    reader = models.CharField(max_length=40, blank=True, default="")
    """Format and version of the readers that read it last, as `pdf/2`; empty for what was read before that was kept."""
    source_url = models.CharField(max_length=2000, blank=True, default="")
    """Where the worker fetches it, or fetched it; empty for an upload."""
    password_sealed = models.TextField(blank=True, default="")
    """Encrypted, of a file that needs one to be read; gone as soon as the job has ended, however it did."""
    version = models.PositiveIntegerField(default=1)
    serving_version = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=64)
    updated_at = models.DateTimeField(auto_now=True)
    """When it last changed its state or was described; progress within a stage is `progressed_at`."""

    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    """0: not known yet. In the embedding stage both count chunks."""
    pages = models.PositiveIntegerField(null=True, blank=True)
    """Null where the format has no pages, or before it was read."""
    chunk_count = models.PositiveIntegerField(default=0)
    language = models.CharField(max_length=8, blank=True, default="")
    """ISO 639-1 of what was read; empty when it could not be told."""
    metadata = models.JSONField(default=dict, blank=True)
    """What the file says of itself, and over it what people said; search filters by it."""
    described = models.JSONField(default=dict, blank=True)
    """What people said alone: it outlives reading the document anew."""
    warnings = models.JSONField(default=list, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)

    error_step = models.CharField(max_length=16, blank=True, default="")
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.TextField(blank=True, default="")

    attempts = models.PositiveIntegerField(default=0)
    queued_at = models.DateTimeField(null=True, blank=True)
    stage_at = models.DateTimeField(null=True, blank=True)
    """When the present stage began."""
    progressed_at = models.DateTimeField(null=True, blank=True)
    """When the worker last got a step further: a job whose figure stands still shows its age."""
    lease_owner = models.CharField(max_length=100, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fencing = models.PositiveBigIntegerField(default=0)
    """Raised by every lease taken; a write that carries an older number changes nothing."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "sha256"],
                condition=~models.Q(sha256=""),
                name="document_once_a_collection",
            ),
            models.UniqueConstraint(
                fields=["collection", "source_url"],
                condition=models.Q(sha256=""),
                name="document_fetched_once",
            ),
        ]
        indexes = [
            models.Index(fields=["collection", "-created_at"], name="document_newest"),
            models.Index(fields=["collection", "-updated_at"], name="document_changed"),
            models.Index(
                fields=["lease_expires_at"],
                condition=models.Q(status__in=("queued", "parsing", "chunking", "embedding")),
                name="document_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def progress(self) -> float | None:
        """Share of the present stage that is done, 0 to 1; None while it is not known."""
        if self.status == Status.READY:
            return 1.0
        return self.progress_done / self.progress_total if self.progress_total else None

    @property
    def error(self) -> dict[str, str] | None:
        """Step, code and sentence of the failure, or None."""
        if not self.error_step:
            return None
        return {"step": self.error_step, "code": self.error_code, "message": self.error_message}


class DocumentText(Row):
    """What the machine read, a row a page. The document's text is the pages joined by PAGE_BREAK."""

    team_id = models.UUIDField()
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="texts")
    version = models.PositiveIntegerField()
    page = models.PositiveIntegerField()
    start = models.PositiveBigIntegerField()
    """Offset of this page's first character in the whole document text."""
    text = models.TextField()
    lines = models.JSONField(default=list, blank=True)
    """Where the text stands: [start, end, left, top, right, bottom] of each line, offsets into `text`, places as
    fractions of the page. Empty where the format has no places, and for what was read before they were kept."""
    aspect = models.FloatField(null=True, blank=True)
    """Width by height of the page as it is shown; null where it cannot be shown."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "version", "page"], name="text_once_a_page"),
        ]

    def __str__(self) -> str:
        return f"page {self.page} of {self.document_id}"


class Chunk(Row):
    """A searchable stretch of a committed version. `text` equals `document_text[start:end]`.

    Rows exist only for the version that serves, so search needs no state filter.
    """

    team_id = models.UUIDField()
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="chunks")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks")
    version = models.PositiveIntegerField()
    index = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True)
    start = models.PositiveBigIntegerField()
    end = models.PositiveBigIntegerField()
    text = models.TextField()
    heading = models.TextField(blank=True, default="")
    tokens = models.PositiveIntegerField()
    content_hash = models.BinaryField(max_length=32)
    """SHA-256 of the text that is embedded (heading path and text): the same text is never embedded twice."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "version", "index"], name="chunk_once"),
        ]
        indexes = [models.Index(fields=["team_id", "content_hash"], name="chunk_content")]

    def __str__(self) -> str:
        return f"chunk {self.index} of {self.document_id}"


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
