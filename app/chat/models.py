"""Conversations and turns. A turn is one question with its answer; branches hang on `parent`."""

from uuid import uuid4

from django.conf import settings
from django.db import models

from app.accounts.models import Level, Team
from app.common.models import BaseModel


class Assistant(BaseModel):
    """A way of asking that was saved: a prompt, a model, collections. Spends nothing: who uses it pays as always."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="assistants")
    """Its owner, whose members may use it."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=60, unique=True)
    """`/v1` knows it as the model `assistant/<slug>`."""
    description = models.CharField(max_length=200, blank=True)
    prompt = models.TextField(blank=True)
    """Follows our own instructions in every question."""
    model = models.CharField(max_length=100)
    collections = models.JSONField(default=list)
    """Ids; who asks must be allowed to read each of them."""
    level = models.CharField(max_length=10, choices=Level, default=Level.PUBLIC)
    shared_with = models.ManyToManyField(Team, blank=True, related_name="+")
    """Teams whose members may use it besides."""
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"assistant/{self.slug}"


class Conversation(BaseModel):
    """A tree of turns, owned by a person, paid by a team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="conversations")
    """The payer, chosen when it is created."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=100, blank=True)
    assistant = models.ForeignKey(
        Assistant, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Whose prompt and level its questions take."""
    collections = models.JSONField(default=list)
    """Collection ids searched unless a turn names others."""
    attachments_id = models.UUIDField(null=True, blank=True)
    """Its own private collection, made with the first file that is attached."""
    level = models.CharField(max_length=10, choices=Level, default=Level.PUBLIC)
    """Highest privacy level any turn had; never lowered."""
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)
    imported_at = models.DateTimeField(null=True, blank=True)
    """Where it was brought along from elsewhere, old as it may be: how long it is kept counts from here."""

    class Meta:
        indexes = (models.Index(fields=["owner", "-updated_at"]),)


class TurnState(models.TextChoices):
    """`running` ends in exactly one of the others."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Turn(BaseModel):
    """One question and what came of it. Money is in the ledger; the figures here are a copy for showing."""

    conversation = models.ForeignKey(Conversation, null=True, on_delete=models.CASCADE, related_name="turns")
    """Null for a stateless `/v1` call that searched documents: kept so that its sources can be checked."""
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    question = models.TextField()
    attachments = models.JSONField(default=list)
    """Files that went along: document_id, name, way (whole, searched, picture) and tokens of each."""
    answer = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=TurnState, default=TurnState.RUNNING)
    finish_reason = models.CharField(max_length=20, blank=True)
    error = models.JSONField(null=True, blank=True)
    model = models.CharField(max_length=100)
    deployment_id = models.UUIDField(null=True)
    reservation_id = models.UUIDField(null=True)
    level = models.CharField(max_length=10, choices=Level, default=Level.PUBLIC)
    estimate = models.JSONField(default=dict)
    route = models.JSONField(null=True, blank=True)
    """Why this deployment: the name asked for, the deployments in order, and a line of reason for each."""
    notices = models.JSONField(default=list)
    quotes = models.JSONField(default=list)
    matches = models.JSONField(null=True, blank=True)
    """Unmarked sentences of the answer that a passage says in nearly the same words: found by us, not cited by the
    model. Null: not looked for."""
    usage = models.JSONField(null=True, blank=True)
    timing = models.JSONField(default=dict)
    """Milliseconds by stage, from `app.chat.clock`."""
    feedback = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField()
    stop_requested = models.BooleanField(default=False)

    class Meta:
        indexes = (
            models.Index(fields=["conversation", "id"]),
            models.Index(fields=["heartbeat_at"], condition=models.Q(state="running"), name="turn_running"),
        )


class SentPassage(BaseModel):
    """A passage exactly as it was sent to the model, so that a citation can be checked for ever."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="passages")
    team_id = models.UUIDField()
    number = models.PositiveSmallIntegerField()
    """The `[n]` it was sent under."""
    passage_id = models.UUIDField()
    document_id = models.UUIDField()
    document_version = models.PositiveIntegerField()
    collection_id = models.UUIDField()
    title = models.CharField(max_length=500)
    heading = models.TextField(blank=True)
    page = models.PositiveIntegerField(null=True)
    page_end = models.PositiveIntegerField(null=True)
    """Where the passage reaches over more than one page."""
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    score = models.FloatField()
    cited = models.BooleanField(default=False)
    warnings = models.JSONField(default=list)
    whole = models.BooleanField(default=False)
    """Part of a file that went along whole, rather than something a search found."""
    erased_at = models.DateTimeField(null=True, blank=True)
    receipt = models.CharField(max_length=32, blank=True)
    """Number of the erasure that blanked the text; its hash above stays."""

    class Meta:
        indexes = (models.Index(fields=["document_id"]), models.Index(fields=["collection_id"]))
        constraints = (models.UniqueConstraint(fields=["turn", "number"], name="one_passage_per_number"),)


class TurnTiming(models.Model):
    """How long one turn took and where, of every turn that reached a reservation. No content; kept for 30 days."""

    id = models.UUIDField(primary_key=True)
    """The turn's."""
    ended_at = models.DateTimeField()
    team_id = models.UUIDField()
    request_id = models.CharField(max_length=100)
    model = models.CharField(max_length=100)
    """The name that was to answer."""
    served_by = models.CharField(max_length=100)
    """The name that did; another one after a fallback."""
    deployment_id = models.UUIDField()
    state = models.CharField(max_length=12)
    error = models.CharField(max_length=60)
    calls = models.PositiveIntegerField()
    """Upstream calls of the answer: above 1 after a retry or a fallback."""
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    ttft_ms = models.FloatField(null=True)
    total_ms = models.FloatField()
    itl_ms = models.FloatField(null=True)
    tokens_per_second = models.FloatField(null=True)
    stages = models.JSONField()
    """Milliseconds by the names of `app.chat.stages`, adding up to `total_ms`."""

    class Meta:
        indexes = (
            models.Index(fields=["ended_at"], name="chat_timing_ended"),
            models.Index(fields=["request_id"], name="chat_timing_request"),
        )

    def __str__(self) -> str:
        return f"{self.id} {self.total_ms:.0f} ms"


class RetentionRule(BaseModel):
    """How long conversations are kept: of a team, or of every team without a rule of its own."""

    class Keep(models.TextChoices):
        KEEP = "keep", "keep"
        DAYS = "days", "for so many days"
        NOT_STORED = "not_stored", "not stored"

    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    """Null: the installation."""
    conversations = models.CharField(max_length=10, choices=Keep, default=Keep.KEEP)
    days = models.PositiveIntegerField(null=True, blank=True)
    raw_usage_days = models.PositiveIntegerField(default=30)
    """Of the installation's rule: how long servers' usage blocks stay as they were received."""

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["team"], nulls_distinct=False, name="one_retention_rule"),
            models.CheckConstraint(
                condition=models.Q(conversations="days", days__gt=0)
                | (~models.Q(conversations="days") & models.Q(days=None)),
                name="retention_days_where_days",
            ),
        )

    def __str__(self) -> str:
        kept = f"{self.days} days" if self.days else self.get_conversations_display()
        return f"conversations: {kept}, raw usage: {self.raw_usage_days} days"


class Audience(models.TextChoices):
    """Who may open a shared conversation; nobody may without signing in."""

    EVERYONE = "everyone"
    TEAM = "team"


class ShareLink(BaseModel):
    """A branch of a conversation that others may read. Its id is random: neither guessed nor ordered by time."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="shares")
    leaf = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="+")
    """The last turn that is shown: what is asked later is not."""
    audience = models.CharField(max_length=10, choices=Audience, default=Audience.EVERYONE)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
