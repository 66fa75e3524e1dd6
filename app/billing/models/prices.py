"""Prices: versions that are written once and closed once, never changed."""

from django.db import models
from django.db.models import Q

from app.common.models import BaseModel


class PriceVersion(BaseModel):
    """What one price key costs from an instant on. A new price is a new version; the old one is closed.

    A trigger refuses every change but closing, an exclusion constraint refuses overlap, so a charge can be
    explained for ever from the version it names.
    """

    price_key = models.CharField(max_length=200)
    """Names what is sold, whoever serves it; a deployment says which key it sells under. `*`: a team's own price of
    everything it has no other own price for. `provisioned/<deployment>`: what a deployment costs by the hour."""
    side = models.CharField(max_length=5, default="price", choices=[("price", "price"), ("cost", "cost")])
    """`price`: what the payer owes; `cost`: what the server's owner asks of us."""
    team_id = models.UUIDField(null=True, blank=True)
    """A rate of this team only; it goes before the general one."""
    mode = models.CharField(max_length=20, default="standard")
    currency = models.CharField(max_length=3)
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    tier_mode = models.CharField(max_length=20, default="whole_request")
    """whole_request: the size of the whole prompt chooses one rate for all of it; marginal: of each component the units
    above a bound alone have the bound's rate."""
    dearest = models.JSONField(default=list)
    """What a hold must assume, by prompt size: `[{from, upto, in, out, fee}]`, see `pricing.dearest`."""
    source = models.CharField(max_length=200)
    approved_by = models.CharField(max_length=200)
    """Opaque name of who approved it, such as `user:<uuid>` or `setup`."""

    class Meta:
        indexes = (
            models.Index(fields=["price_key", "side", "mode", "effective_from"], name="billing_price_lookup"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(effective_to__isnull=True) | Q(effective_to__gt=models.F("effective_from")),
                name="billing_price_period",
            ),
            models.CheckConstraint(condition=Q(side__in=["price", "cost"]), name="billing_price_side"),
            models.CheckConstraint(
                condition=Q(tier_mode__in=["whole_request", "marginal"]), name="billing_price_tier_mode"
            ),
            models.CheckConstraint(
                condition=~Q(price_key="*") | Q(team_id__isnull=False), name="billing_price_of_all"
            ),
        )

    def __str__(self) -> str:
        return f"{self.price_key} {self.side} from {self.effective_from:%Y-%m-%d %H:%M}"


class PriceComponent(models.Model):
    """The rate of one component; exact, so that rate × whole units never needs rounding."""

    id = models.BigAutoField(primary_key=True)
    version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, related_name="components")
    component = models.CharField(max_length=40)
    """input, cache_read, cache_write…, output, reasoning…, request, or the name of another unit."""
    min_prompt_tokens = models.PositiveBigIntegerField(default=0)
    """Whole prompt, cache included, from which this rate holds."""
    per_units = models.PositiveIntegerField(default=1_000_000)
    price = models.DecimalField(max_digits=18, decimal_places=9)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["version", "component", "min_prompt_tokens"], name="billing_component_once"
            ),
            # NaN compares greater than every number in PostgreSQL: the upper bound refuses it.
            models.CheckConstraint(
                condition=Q(price__gte=0, price__lt=10**9), name="billing_component_range"
            ),
            models.CheckConstraint(
                condition=Q(per_units__in=[1, 1000, 1000000]), name="billing_component_per"
            ),
        )

    def __str__(self) -> str:
        return f"{self.component} {self.price} per {self.per_units}"
