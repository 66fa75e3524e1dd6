"""Which inference servers exist, which models they serve, under which names. Prices are billing's, not here."""

from django.db import models

from app.accounts.models import Level
from app.common.crypto import decrypt, encrypt
from app.common.models import BaseModel

TOOLS, IMAGES, JSON_SCHEMA = "tools", "images", "json_schema"
CAPABILITIES = (TOOLS, IMAGES, JSON_SCHEMA)
"""What a call may need beside text."""


def capabilities_usual() -> list[str]:
    """What chat models of today can do; a demonstration model can not."""
    return [TOOLS, JSON_SCHEMA]


class Backend(BaseModel):
    """One inference server or provider account."""

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=30)
    """A kind of `inference_client`: openai, llamacpp, vllm, ollama, anthropic…"""
    base_url = models.URLField(max_length=500)
    secret = models.TextField(blank=True, editable=False)
    """The server's key, encrypted; empty when it wants none."""
    region = models.CharField(max_length=60, blank=True)
    options = models.JSONField(default=dict, blank=True)
    """What its kind wants to know beside address and key, such as an API version; names in `Kind.options`."""
    leaves_premises = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.name

    @property
    def api_key(self) -> str:
        """The plain key. Never shown, never logged."""
        return decrypt(self.secret)

    def set_api_key(self, value: str) -> None:
        """Keep `value` encrypted; the caller saves."""
        self.secret = encrypt(value)


class Deployment(BaseModel):
    """A model as one backend serves it, under the name people choose."""

    class Purpose(models.TextChoices):
        CHAT = "chat"
        EMBEDDING = "embedding"
        RERANK = "rerank"

    backend = models.ForeignKey(Backend, on_delete=models.CASCADE, related_name="deployments")
    public_name = models.CharField(max_length=100)
    upstream_model = models.CharField(max_length=200)
    purpose = models.CharField(max_length=10, choices=Purpose, default=Purpose.CHAT)
    price_key = models.CharField(max_length=200)
    """What billing finds the price under."""
    context_window = models.PositiveIntegerField(null=True, blank=True)
    """Tokens of input and output together; null is unknown and shown as such."""
    max_output_tokens = models.PositiveIntegerField(default=1024)
    clearance = models.CharField(max_length=10, choices=Level, default=Level.PRIVATE)
    """The highest privacy level it may see."""
    tokenizer = models.CharField(max_length=60, default="o200k_base")
    abort_stops_billing = models.BooleanField(default=True)
    slots = models.PositiveIntegerField(default=8)
    enabled = models.BooleanField(default=True)
    is_demonstration = models.BooleanField(default=False)
    priority = models.IntegerField(default=0)
    """Among deployments of one public name, the higher is tried first."""
    capabilities = models.JSONField(default=capabilities_usual, blank=True)
    """Of `CAPABILITIES`; a call that needs another one is refused here."""
    parameters_b = models.DecimalField(max_digits=8, decimal_places=3, null=True, blank=True)
    """Size in billions of parameters, for routes that want the smallest model that will do; null: unknown."""
    knee_tokens_per_s = models.FloatField(null=True, blank=True, editable=False)
    """Input and output together at the knee, as the last `manage.py loadtest` found it; null: not measured."""
    knee_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        indexes = (models.Index(fields=["public_name", "purpose"]),)
        constraints = (
            models.UniqueConstraint(
                fields=["backend", "upstream_model", "purpose"], name="one_deployment_per_model"
            ),
        )

    def __str__(self) -> str:
        return f"{self.public_name} on {self.backend}"


class ModelRoute(BaseModel):
    """How one name is served that is not simply a model's own: an alias, a model with fallbacks, a retired model."""

    name = models.CharField(max_length=100, unique=True)
    """`auto`, `fast`, `private`, or a public model name."""
    model_names = models.JSONField(default=list, blank=True)
    """Public model names to try, in this order; empty for a retired model."""
    successor = models.CharField(max_length=100, blank=True)
    """Set: the name is retired, and this one answers in its place."""
    allow_dearer = models.BooleanField(default=False)
    """A later model may cost more than the first."""
    smallest = models.BooleanField(default=False)
    """The smallest that can do it comes first, instead of the order."""
    allow_unpriced = models.BooleanField(default=False)
    """A model without a price may stand in; billing refuses it all the same to whoever has a money budget."""

    def __str__(self) -> str:
        return self.name


class TokenFit(models.Model):
    """How one deployment's server counts beside our tokenizer, learned from its last calls; see `learned.py`.

    Written off the hot path by one task, read by every process with the deployment itself.
    """

    deployment = models.OneToOneField(
        Deployment, on_delete=models.CASCADE, primary_key=True, related_name="token_fit"
    )
    tokenizer = models.CharField(max_length=60)
    """Which of ours it was learned against; another one starts anew."""
    learned = models.JSONField(default=dict)
    last_call_at = models.DateTimeField(null=True)
    """The newest call that was looked at."""
    short_at = models.DateTimeField(null=True, blank=True)
    """When the server last said that it read fewer tokens than were sent: it may cut prompts in silence."""
    short_sent = models.PositiveIntegerField(null=True, blank=True)
    """Tokens sent then, by our count."""
    short_read = models.PositiveIntegerField(null=True, blank=True)
    """And what the server said."""

    def __str__(self) -> str:
        return f"{self.tokenizer} for {self.deployment_id}"


class LoadSample(models.Model):
    """What one server told of its load at one moment, under the names of `inference_client.metrics`."""

    id = models.BigAutoField(primary_key=True)
    backend = models.ForeignKey(Backend, on_delete=models.CASCADE, related_name="samples", db_index=False)
    taken_at = models.DateTimeField()
    figures = models.JSONField(default=dict)
    problem = models.CharField(max_length=300, blank=True)
    """Why there are none; empty when there are."""

    class Meta:
        indexes = (
            models.Index(fields=["backend", "taken_at"], name="catalog_sample_backend"),
            models.Index(fields=["taken_at"], name="catalog_sample_age"),
        )
