"""Documents, the text that was read of them, and the chunks that search finds."""

from django.db import models

from retrieval.models.base import Row
from retrieval.models.collections import Collection


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
    """What the machine read, one row per page. The document's text is the pages joined by PAGE_BREAK."""

    team_id = models.UUIDField()
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="texts", db_index=False)
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
        # By it, the page on which a stretch ends is one step away in a book of ten thousand pages too.
        indexes = [models.Index(fields=["document", "version", "start"], name="text_by_place")]

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
