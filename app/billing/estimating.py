"""What a call would cost at the prices of now, before anybody holds anything."""

from decimal import Decimal
from uuid import UUID

from app.billing.pricing import dearest, for_display, hold_amount
from app.billing.selectors import price_billed


def call_price(
    price_key: str, *, team_id: UUID | None, input_tokens: int, output_tokens: int
) -> Decimal | None:
    """The most that a call with so many tokens costs this payer, for display; None: the price is not known."""
    price = price_billed(price_key, team_id=team_id)
    if price is None:
        return None
    tiers = dearest(price.rates, price.tier_mode)
    amount = hold_amount(tiers, input_tokens=input_tokens, output_tokens=output_tokens)
    return None if amount is None else for_display(amount)
