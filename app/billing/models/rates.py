"""What changes a price on its way to an entry: a team's mark-up, and the exchange rate of a cost in another currency.

Written once; a mark-up is closed once, an exchange rate holds until the next one. Each entry names those it used.
"""

from django.db import models
from django.db.models import Q

from app.common.models import BaseModel


class TeamRate(BaseModel):
    """A factor on the general prices for one team: of one price key, or of all. An own fixed price goes before it."""

    team_id = models.UUIDField()
    price_key = models.CharField(max_length=200, blank=True, default="")
    """Empty: every price."""
    factor = models.DecimalField(max_digits=12, decimal_places=6)
    """1.2 is a mark-up of 20 %; each unit price is rounded half-even to its 9 decimals, and nothing after that."""
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    source = models.CharField(max_length=200, blank=True)
    approved_by = models.CharField(max_length=200)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(effective_to__isnull=True) | Q(effective_to__gt=models.F("effective_from")),
                name="billing_team_rate_period",
            ),
            models.CheckConstraint(
                condition=Q(factor__gte=0, factor__lt=100), name="billing_team_rate_range"
            ),
        )

    def __str__(self) -> str:
        what = self.price_key or "all prices"
        return f"× {self.factor.normalize():f} on {what} from {self.effective_from:%Y-%m-%d %H:%M}"


class ExchangeRate(BaseModel):
    """What one unit of a currency is worth in the installation's, from an instant until the next rate."""

    currency = models.CharField(max_length=3)
    to_currency = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=18, decimal_places=9)
    effective_from = models.DateTimeField()
    source = models.CharField(max_length=200, blank=True)
    """Where it was read, such as `ECB`."""
    entered_by = models.CharField(max_length=200)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["currency", "to_currency", "effective_from"], name="billing_exchange_once"
            ),
            models.CheckConstraint(condition=Q(rate__gt=0, rate__lt=10**9), name="billing_exchange_range"),
            models.CheckConstraint(
                condition=~Q(currency=models.F("to_currency")), name="billing_exchange_pair"
            ),
        )

    def __str__(self) -> str:
        worth = f"{self.rate.normalize():f} {self.to_currency}"
        return f"1 {self.currency} = {worth} from {self.effective_from:%Y-%m-%d %H:%M}"
